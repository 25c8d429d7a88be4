"""Numbers that lists and dictionaries collect: read at once after the loop, with their own types."""

from __future__ import annotations

from syncscan.fixing.rewrites.rarer_reads import deferred_read
from tests.each import each
from tests.fixing.example import Rewritten

REWRITE = deferred_read
KEPT: dict[str, str] = {
    "an outer loop fills it on": (
        "values = []\n"
        "for _ in range(2):\n"
        "    for loss in losses:\n"
        "        values.append(loss.item())\n"
        "    str(values)\n"
        "result = values"
    ),
    "it would be empty in one of the tuples": (
        "log = []\nfor k in range(4):\n    log.append((k, sum([loss.item() for loss in losses[:k]])))\nresult = log"
    ),
    "it has a second name": (
        "values = alias = []\nfor loss in losses:\n    values.append(loss.item())\nresult = alias"
    ),
    "the host looks into it": (
        "seen = []\n"
        "for step, loss in enumerate(losses):\n"
        "    seen.append(loss.item())\n"
        "    if step % 5 == 4:\n"
        "        str(max(seen[-3:]))\n"
        "result = seen"
    ),
    "a list of lists": (
        "by_kind = [[] for _ in range(3)]\n"
        "for step, loss in enumerate(losses):\n"
        "    by_kind[step % 3].append(loss.item())\n"
        "result = by_kind"
    ),
    "a dictionary of lists": (
        'history = {"loss": [], "lr": []}\n'
        "for k, loss in enumerate(losses):\n"
        '    history["loss"] += [loss.item()]\n'
        '    history["lr"].append(0.1 * k)\n'
        "result = history"
    ),
    "a deque": (
        "from collections import deque\n"
        "window = deque(maxlen=3)\n"
        "for loss in losses:\n"
        "    window.append(loss.item())\n"
        "result = list(window)"
    ),
    "it holds numbers at first": (
        "result = [0.0] * 12\nfor step, loss in enumerate(losses):\n    result[step] = loss.item()"
    ),
    "it begins with a number": (
        "values = [7.0]\n"
        "for loss in losses:\n"
        "    values.append(loss.item())\n"
        "values.append(8.0)\n"
        "result = sum(values), len(values)"
    ),
    "two dtypes": (
        "values = []\n"
        "for loss in losses:\n"
        "    values.append(loss.item())\n"
        "    values.append((loss * 9).long().item())\n"
        "result = values"
    ),
}
END = "\nresult = repr(result)"
FIXED = {
    (
        "values = []\n"
        "with torch.no_grad():\n"
        "    for loss in losses:\n"
        "        values.append((loss + 1).item())\n"
        "result = values"
    ): (
        "values = []\n"
        "with torch.no_grad():\n"
        "    for loss in losses:\n"
        "        values.append(loss + 1)\n"
        "    values = torch.stack(values).tolist() if values else []\n"
        "result = values"
    ),
    (
        "recent = []\n"
        "for loss in losses:\n"
        "    recent.append(loss.item())\n"
        "    if len(recent) > 3:\n"
        "        recent.pop(0)\n"
        "result = recent"
    ): (
        "recent = []\n"
        "for loss in losses:\n"
        "    recent.append(loss.clone())\n"
        "    if len(recent) > 3:\n"
        "        recent.pop(0)\n"
        "recent = torch.stack(recent).tolist() if recent else []\n"
        "result = recent"
    ),
    (
        "from collections import OrderedDict\n"
        "total = OrderedDict(loss=0.0)\n"
        "for loss in losses:\n"
        '    total["loss"] += loss.item()\n'
        "result = total"
    ): (
        "from collections import OrderedDict\n"
        "total = OrderedDict(loss=0.0)\n"
        "for loss in losses:\n"
        '    total["loss"] = total["loss"] + loss.double()\n'
        "total.update({k: v.item() for k, v in total.items() if torch.is_tensor(v)})\n"
        "result = total"
    ),
    (
        'one, two = {"loss": 0.0}, {"loss": 0.0}\n'
        "for loss in losses:\n"
        '    one["loss"] += loss.item()\n'
        '    two["loss"] = one["loss"]\n'
        '    one["loss"] += 1.0\n'
        "result = one, two"
    ): (
        'one, two = {"loss": 0.0}, {"loss": 0.0}\n'
        "for loss in losses:\n"
        '    one["loss"] = one["loss"] + loss.double()\n'
        '    two["loss"] = one["loss"]\n'
        '    one["loss"] = one["loss"] + 1.0\n'
        "one.update({k: v.item() for k, v in one.items() if torch.is_tensor(v)})\n"
        "two.update({k: v.item() for k, v in two.items() if torch.is_tensor(v)})\n"
        "result = one, two"
    ),
    ("result = []\nfor loss in losses:\n    result.append(loss.item())"): (
        "result = []\n"
        "for loss in losses:\n"
        "    result.append(loss.clone())\n"
        "result = torch.stack(result).tolist() if result else []"
    ),
    (
        'stats = {"loss": 0.0, "square": 0.0}\n'
        "for loss in losses:\n"
        '    stats["loss"] += loss.item()\n'
        '    stats["square"] += loss.item() ** 2\n'
        "result = stats"
    ): (
        'stats = {"loss": 0.0, "square": 0.0}\n'
        "for loss in losses:\n"
        '    stats["loss"] = stats["loss"] + loss.double()\n'
        '    stats["square"] = stats["square"] + (loss.double() ** 2)\n'
        "stats.update({k: v.item() for k, v in stats.items() if torch.is_tensor(v)})\n"
        "result = stats"
    ),
    (
        "log = []\n"
        "for step, loss in enumerate(losses):\n"
        '    log.append({"step": step, "loss": loss.item()})\n'
        "result = log"
    ): (
        "log = []\n"
        "for step, loss in enumerate(losses):\n"
        '    log.append({"step": step, "loss": loss.clone()})\n'
        'for row, value in zip(log, torch.stack([row["loss"] for row in log]).tolist() if log else []):\n'
        '    row["loss"] = value\n'
        "result = log"
    ),
    (
        "moving, result = torch.zeros((), device=device), []\n"
        "for loss in losses:\n"
        "    moving.mul_(0.9).add_(loss, alpha=0.1)\n"
        "    result.append(moving.item())"
    ): (
        "moving, result = torch.zeros((), device=device), []\n"
        "for loss in losses:\n"
        "    moving.mul_(0.9).add_(loss, alpha=0.1)\n"
        "    result.append(moving.clone())\n"
        "result = torch.stack(result).tolist() if result else []"
    ),
    ("result = []\nfor loss in losses:\n    result.append(loss.item())\n    loss += 1"): (
        "result = []\n"
        "for loss in losses:\n"
        "    result.append(loss.clone())\n"
        "    loss += 1\n"
        "result = torch.stack(result).tolist() if result else []"
    ),
    (
        "h = torch.rand(12, device=device).half().unbind()\n"
        "result = []\n"
        "for loss in h:\n"
        "    result.append(loss.item())\n"
        "result = result"
    ): (
        "h = torch.rand(12, device=device).half().unbind()\n"
        "result = []\n"
        "for loss in h:\n"
        "    result.append(loss.clone())\n"
        "result = torch.stack(result).tolist() if result else []\n"
        "result = result"
    ),
    (
        "w = torch.rand(3, device=device, requires_grad=True)\n"
        "opt = torch.optim.SGD([w], lr=0.1)\n"
        "total, norms = 0.0, []\n"
        "for step in range(5):\n"
        "    loss = (w * w).sum()\n"
        "    opt.zero_grad()\n"
        "    loss.backward()\n"
        "    opt.step()\n"
        "    total += loss.item()\n"
        "    norms.append(w.grad.norm().item())\n"
        "    norms.append(w[0].item())\n"
        "result = total, norms"
    ): (
        "w = torch.rand(3, device=device, requires_grad=True)\n"
        "opt = torch.optim.SGD([w], lr=0.1)\n"
        "total, norms = 0.0, []\n"
        "for step in range(5):\n"
        "    loss = (w * w).sum()\n"
        "    opt.zero_grad()\n"
        "    loss.backward()\n"
        "    opt.step()\n"
        "    total += loss.detach().double()\n"
        "    norms.append(w.grad.norm().item())\n"
        "    norms.append(w[0].item())\n"
        "total = float(total)\n"
        "result = total, norms"
    ),
    (
        "log = []\n"
        "for loss in losses:\n"
        '    log.append({"a": loss.item(), "n": (loss * 9).long().item(), "b": (loss > 0.5).item()})\n'
        "result = log"
    ): (
        "log = []\n"
        "for loss in losses:\n"
        '    log.append({"a": loss.clone(), "n": (loss * 9).long(), "b": (loss > 0.5)})\n'
        'for row, value in zip(log, torch.stack([row["a"] for row in log]).tolist() if log else []):\n'
        '    row["a"] = value\n'
        'for row, value in zip(log, torch.stack([row["n"] for row in log]).tolist() if log else []):\n'
        '    row["n"] = value\n'
        'for row, value in zip(log, torch.stack([row["b"] for row in log]).tolist() if log else []):\n'
        '    row["b"] = value\n'
        "result = log"
    ),
    (
        'stats = {"a": 0.0, "n": 0}\n'
        "for loss in losses:\n"
        '    stats["a"] += loss.item()\n'
        '    stats["n"] += (loss * 9).long().item()\n'
        "result = stats"
    ): (
        'stats = {"a": 0.0, "n": 0}\n'
        "for loss in losses:\n"
        '    stats["a"] = stats["a"] + loss.double()\n'
        '    stats["n"] = stats["n"] + (loss * 9).long()\n'
        "stats.update({k: v.item() for k, v in stats.items() if torch.is_tensor(v)})\n"
        "result = stats"
    ),
}


@each("body", FIXED)
def test_it_is_rewritten(programs: dict[str, Rewritten], body: str) -> None:
    """It waits less, and gives the same result."""
    program = programs[body]
    assert program.text == FIXED[body] + END
    assert program.waits[1] < program.waits[0]
    assert program.results[0] == program.results[1]


@each("name", KEPT)
def test_it_stays(programs: dict[str, Rewritten], name: str) -> None:
    """Not a byte changes: a line or two after the loop couldn't read it."""
    assert programs[name].text == KEPT[name] + END
