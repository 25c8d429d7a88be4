"""Numbers that lists and dictionaries collect: read at once after the loop, with their own types."""

from __future__ import annotations

import pytest

from syncscan.fixing.rewrites import deferred
from tests.fixing.example import Rewritten

REWRITE = deferred
KEPT: dict[str, str] = {}
END = "\nresult = repr(result)"
FIXED = {
    ("values = alias = []\nfor loss in losses:\n    values.append(loss.item())\nresult = alias"): (
        "values = alias = []\nfor loss in losses:\n    values.append(loss.detach().clone())\n"
        "for dtype in {v.dtype for v in values if torch.is_tensor(v)}:\n"
        "    at = [k for k, v in enumerate(values) if torch.is_tensor(v) and v.dtype == dtype]\n"
        "    for k, v in zip(at, torch.stack([values[k] for k in at]).tolist()):\n"
        "        values[k] = v\n"
        "result = alias"
    ),
    (
        "seen = []\n"
        "for step, loss in enumerate(losses):\n"
        "    seen.append(loss.item())\n"
        "    if step % 5 == 4:\n"
        "        str(max(seen[-3:]))\n"
        "result = seen"
    ): (
        "seen = []\n"
        "for step, loss in enumerate(losses):\n"
        "    seen.append(loss.detach().clone())\n"
        "    if step % 5 == 4:\n"
        "        for dtype in {v.dtype for v in seen if torch.is_tensor(v)}:\n"
        "            at = [k for k, v in enumerate(seen) if torch.is_tensor(v) and v.dtype == dtype]\n"
        "            for k, v in zip(at, torch.stack([seen[k] for k in at]).tolist()):\n"
        "                seen[k] = v\n"
        "        str(max(seen[-3:]))\n"
        "for dtype in {v.dtype for v in seen if torch.is_tensor(v)}:\n"
        "    at = [k for k, v in enumerate(seen) if torch.is_tensor(v) and v.dtype == dtype]\n"
        "    for k, v in zip(at, torch.stack([seen[k] for k in at]).tolist()):\n"
        "        seen[k] = v\n"
        "result = seen"
    ),
    (
        "by_kind = [[] for _ in range(3)]\n"
        "for step, loss in enumerate(losses):\n"
        "    by_kind[step % 3].append(loss.item())\n"
        "result = by_kind"
    ): (
        "by_kind = [[] for _ in range(3)]\n"
        "for step, loss in enumerate(losses):\n"
        "    by_kind[step % 3].append(loss.detach().clone())\n"
        "for values in by_kind:\n"
        "    for dtype in {v.dtype for v in values if torch.is_tensor(v)}:\n"
        "        at = [k for k, v in enumerate(values) if torch.is_tensor(v) and v.dtype == dtype]\n"
        "        for k, v in zip(at, torch.stack([values[k] for k in at]).tolist()):\n"
        "            values[k] = v\n"
        "result = by_kind"
    ),
    (
        "seen, rows = [], []\n"
        "for loss in losses:\n"
        "    seen.append(round(loss.item(), 3))\n"
        "    value = loss.item()\n"
        '    rows.append({"loss": round(value, 2)})\n'
        "result = seen, rows"
    ): (
        "seen, rows = [], []\n"
        "for loss in losses:\n"
        "    seen.append(loss.detach().double().round(decimals=3))\n"
        "    value = loss.detach().double()\n"
        '    rows.append({"loss": value.round(decimals=2)})\n'
        "for dtype in {v.dtype for row in rows for v in row.values() if torch.is_tensor(v)}:\n"
        "    cells = [(row, k) for row in rows for k, v in row.items() if torch.is_tensor(v) and v.dtype == dtype]\n"
        "    for (row, k), v in zip(cells, torch.stack([row[k] for row, k in cells]).tolist()):\n"
        "        row[k] = v\n"
        "for dtype in {v.dtype for v in seen if torch.is_tensor(v)}:\n"
        "    at = [k for k, v in enumerate(seen) if torch.is_tensor(v) and v.dtype == dtype]\n"
        "    for k, v in zip(at, torch.stack([seen[k] for k in at]).tolist()):\n"
        "        seen[k] = v\n"
        "result = seen, rows"
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
        "    recent.append(loss.detach().clone())\n"
        "    if len(recent) > 3:\n"
        "        recent.pop(0)\n"
        "for dtype in {v.dtype for v in recent if torch.is_tensor(v)}:\n"
        "    at = [k for k, v in enumerate(recent) if torch.is_tensor(v) and v.dtype == dtype]\n"
        "    for k, v in zip(at, torch.stack([recent[k] for k in at]).tolist()):\n"
        "        recent[k] = v\n"
        "result = recent"
    ),
    (
        'total = {"a": 0.0, "b": 0.0}\n'
        "for k in range(0, 12, 2):\n"
        '    parts = {name: loss.item() for name, loss in zip("ab", losses[k:])}\n'
        "    for name, value in parts.items():\n"
        "        total[name] += value\n"
        "result = total"
    ): (
        'total = {"a": 0.0, "b": 0.0}\n'
        "for k in range(0, 12, 2):\n"
        '    parts = {name: loss.detach().double() for name, loss in zip("ab", losses[k:])}\n'
        "    for name, value in parts.items():\n"
        "        total[name] += value\n"
        "total.update({k: v.item() for k, v in total.items() if torch.is_tensor(v)})\n"
        "result = total"
    ),
    (
        "from collections import Counter\n"
        "total = Counter()\n"
        "for k, loss in enumerate(losses):\n"
        "    total[k % 2] += loss.item()\n"
        "    total.update(steps=1)\n"
        "result = total"
    ): (
        "from collections import Counter\n"
        "total = Counter()\n"
        "for k, loss in enumerate(losses):\n"
        "    total[k % 2] = total[k % 2] + loss.detach().double()\n"
        "    total.update(steps=1)\n"
        "dict.update(total, {k: v.item() for k, v in total.items() if torch.is_tensor(v)})\n"
        "result = total"
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
        '    total["loss"] += loss.detach().double()\n'
        "total.update({k: v.item() for k, v in total.items() if torch.is_tensor(v)})\n"
        "result = total"
    ),
    (
        'history = {"loss": [], "lr": []}\n'
        "for k, loss in enumerate(losses):\n"
        '    history["loss"] += [loss.item()]\n'
        '    history["lr"].append(0.1 * k)\n'
        "result = history"
    ): (
        'history = {"loss": [], "lr": []}\n'
        "for k, loss in enumerate(losses):\n"
        '    history["loss"] += [loss.detach().clone()]\n'
        '    history["lr"].append(0.1 * k)\n'
        "for values in history.values():\n"
        "    for dtype in {v.dtype for v in values if torch.is_tensor(v)}:\n"
        "        at = [k_2 for k_2, v in enumerate(values) if torch.is_tensor(v) and v.dtype == dtype]\n"
        "        for k_2, v in zip(at, torch.stack([values[k_2] for k_2 in at]).tolist()):\n"
        "            values[k_2] = v\n"
        "result = history"
    ),
    (
        'stats, history = {"loss": 0.0}, []\n'
        "for loss in losses:\n"
        '    stats["loss"] += loss.item()\n'
        '    history.append(stats["loss"])\n'
        "result = stats, history"
    ): (
        'stats, history = {"loss": 0.0}, []\n'
        "for loss in losses:\n"
        '    stats["loss"] = stats["loss"] + loss.detach().double()\n'
        '    history.append(stats["loss"])\n'
        "stats.update({k: v.item() for k, v in stats.items() if torch.is_tensor(v)})\n"
        "for dtype in {v.dtype for v in history if torch.is_tensor(v)}:\n"
        "    at = [k for k, v in enumerate(history) if torch.is_tensor(v) and v.dtype == dtype]\n"
        "    for k, v in zip(at, torch.stack([history[k] for k in at]).tolist()):\n"
        "        history[k] = v\n"
        "result = stats, history"
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
        '    one["loss"] = one["loss"] + loss.detach().double()\n'
        '    two["loss"] = one["loss"]\n'
        '    one["loss"] = one["loss"] + 1.0\n'
        "one.update({k: v.item() for k, v in one.items() if torch.is_tensor(v)})\n"
        "two.update({k: v.item() for k, v in two.items() if torch.is_tensor(v)})\n"
        "result = one, two"
    ),
    ("result = []\nfor loss in losses:\n    result.append(loss.item())"): (
        "result = []\n"
        "for loss in losses:\n"
        "    result.append(loss.detach().clone())\n"
        "for dtype in {v.dtype for v in result if torch.is_tensor(v)}:\n"
        "    at = [k for k, v in enumerate(result) if torch.is_tensor(v) and v.dtype == dtype]\n"
        "    for k, v in zip(at, torch.stack([result[k] for k in at]).tolist()):\n"
        "        result[k] = v"
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
        '    stats["loss"] += loss.detach().double()\n'
        '    stats["square"] += loss.detach().double() ** 2\n'
        "stats.update({k: v.item() for k, v in stats.items() if torch.is_tensor(v)})\n"
        "result = stats"
    ),
    (
        "rows = []\n"
        "for step, loss in enumerate(losses):\n"
        '    rows.append({"step": step, "loss": loss.item()})\n'
        "result = rows"
    ): (
        "rows = []\n"
        "for step, loss in enumerate(losses):\n"
        '    rows.append({"step": step, "loss": loss.detach().clone()})\n'
        "for dtype in {v.dtype for row in rows for v in row.values() if torch.is_tensor(v)}:\n"
        "    cells = [(row, k) for row in rows for k, v in row.items() if torch.is_tensor"
        "(v) and v.dtype == dtype]\n"
        "    for (row, k), v in zip(cells, torch.stack([row[k] for row, k in cells]).tolist()):\n"
        "        row[k] = v\n"
        "result = rows"
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
        "    result.append(moving.detach().clone())\n"
        "for dtype in {v.dtype for v in result if torch.is_tensor(v)}:\n"
        "    at = [k for k, v in enumerate(result) if torch.is_tensor(v) and v.dtype == dtype]\n"
        "    for k, v in zip(at, torch.stack([result[k] for k in at]).tolist()):\n"
        "        result[k] = v"
    ),
    ("result = []\nfor loss in losses:\n    result.append(loss.item())\n    loss += 1"): (
        "result = []\n"
        "for loss in losses:\n"
        "    result.append(loss.detach().clone())\n"
        "    loss += 1\n"
        "for dtype in {v.dtype for v in result if torch.is_tensor(v)}:\n"
        "    at = [k for k, v in enumerate(result) if torch.is_tensor(v) and v.dtype == dtype]\n"
        "    for k, v in zip(at, torch.stack([result[k] for k in at]).tolist()):\n"
        "        result[k] = v"
    ),
    (
        "from collections import deque\n"
        "window = deque(maxlen=3)\n"
        "for loss in losses:\n"
        "    window.append(loss.item())\n"
        "result = list(window)"
    ): (
        "from collections import deque\n"
        "window = deque(maxlen=3)\n"
        "for loss in losses:\n"
        "    window.append(loss.detach().clone())\n"
        "for dtype in {v.dtype for v in window if torch.is_tensor(v)}:\n"
        "    at = [k for k, v in enumerate(window) if torch.is_tensor(v) and v.dtype == dtype]\n"
        "    for k, v in zip(at, torch.stack([window[k] for k in at]).tolist()):\n"
        "        window[k] = v\n"
        "result = list(window)"
    ),
    ("result = [0.0] * 12\nfor step, loss in enumerate(losses):\n    result[step] = loss.item()"): (
        "result = [0.0] * 12\n"
        "for step, loss in enumerate(losses):\n"
        "    result[step] = loss.detach().clone()\n"
        "for dtype in {v.dtype for v in result if torch.is_tensor(v)}:\n"
        "    at = [k for k, v in enumerate(result) if torch.is_tensor(v) and v.dtype == dtype]\n"
        "    for k, v in zip(at, torch.stack([result[k] for k in at]).tolist()):\n"
        "        result[k] = v"
    ),
    (
        "values = []\n"
        "for loss in losses:\n"
        "    values.append(loss.item())\n"
        "    if len(values) == 4:\n"
        "        values = []\n"
        "result = values"
    ): (
        "values = []\n"
        "for loss in losses:\n"
        "    values.append(loss.detach().clone())\n"
        "    if len(values) == 4:\n"
        "        values = []\n"
        "for dtype in {v.dtype for v in values if torch.is_tensor(v)}:\n"
        "    at = [k for k, v in enumerate(values) if torch.is_tensor(v) and v.dtype == dtype]\n"
        "    for k, v in zip(at, torch.stack([values[k] for k in at]).tolist()):\n"
        "        values[k] = v\n"
        "result = values"
    ),
    (
        "values = [7.0]\n"
        "for loss in losses:\n"
        "    values.append(loss.item())\n"
        "values.append(8.0)\n"
        "result = sum(values), len(values)"
    ): (
        "values = [7.0]\n"
        "for loss in losses:\n"
        "    values.append(loss.detach().clone())\n"
        "for dtype in {v.dtype for v in values if torch.is_tensor(v)}:\n"
        "    at = [k for k, v in enumerate(values) if torch.is_tensor(v) and v.dtype == dtype]\n"
        "    for k, v in zip(at, torch.stack([values[k] for k in at]).tolist()):\n"
        "        values[k] = v\n"
        "values.append(8.0)\n"
        "result = sum(values), len(values)"
    ),
    ("result = []\nfor a, b in zip(losses, losses[1:]):\n    result.append((a.item(), b.item()))"): (
        "result = []\n"
        "for a, b in zip(losses, losses[1:]):\n"
        "    result.append((a.detach().clone(), b.detach().clone()))\n"
        "for dtype in {v.dtype for row in result for v in row if torch.is_tensor(v)}:\n"
        "    cells = [(i, k) for i, row in enumerate(result) for k, v in enumerate(row) i"
        "f torch.is_tensor(v) and v.dtype == dtype]\n"
        "    for (i, k), v in zip(cells, torch.stack([result[i][k] for i, k in cells]).tolist()):\n"
        "        result[i] = (*result[i][:k], v, *result[i][k + 1 :])"
    ),
    (
        "import threading\n"
        "log = []\n"
        "total = 0.0\n"
        "for loss in losses:\n"
        "    total += loss.item()\n"
        "    thread = threading.Thread(target=lambda: log.append(total))\n"
        "    thread.start()\n"
        "    thread.join()\n"
        "result = log"
    ): (
        "import threading\n"
        "log = []\n"
        "total = 0.0\n"
        "for loss in losses:\n"
        "    total = total + loss.detach().double()\n"
        "    thread = threading.Thread(target=lambda: log.append(total))\n"
        "    thread.start()\n"
        "    thread.join()\n"
        "for dtype in {v.dtype for v in log if torch.is_tensor(v)}:\n"
        "    at = [k for k, v in enumerate(log) if torch.is_tensor(v) and v.dtype == dtype]\n"
        "    for k, v in zip(at, torch.stack([log[k] for k in at]).tolist()):\n"
        "        log[k] = v\n"
        "result = log"
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
        "    result.append(loss.detach().clone())\n"
        "for dtype in {v.dtype for v in result if torch.is_tensor(v)}:\n"
        "    at = [k for k, v in enumerate(result) if torch.is_tensor(v) and v.dtype == dtype]\n"
        "    for k, v in zip(at, torch.stack([result[k] for k in at]).tolist()):\n"
        "        result[k] = v\n"
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
        "    norms.append(w.grad.norm())\n"
        "    norms.append(w[0].detach().clone())\n"
        "total = float(total)\n"
        "for dtype in {v.dtype for v in norms if torch.is_tensor(v)}:\n"
        "    at = [k for k, v in enumerate(norms) if torch.is_tensor(v) and v.dtype == dtype]\n"
        "    for k, v in zip(at, torch.stack([norms[k] for k in at]).tolist()):\n"
        "        norms[k] = v\n"
        "result = total, norms"
    ),
    (
        "values = []\n"
        "for loss in losses:\n"
        "    values.append(loss.item())\n"
        "    values.append((loss * 9).long().item())\n"
        "result = values"
    ): (
        "values = []\n"
        "for loss in losses:\n"
        "    values.append(loss.detach().clone())\n"
        "    values.append((loss * 9).long())\n"
        "for dtype in {v.dtype for v in values if torch.is_tensor(v)}:\n"
        "    at = [k for k, v in enumerate(values) if torch.is_tensor(v) and v.dtype == dtype]\n"
        "    for k, v in zip(at, torch.stack([values[k] for k in at]).tolist()):\n"
        "        values[k] = v\n"
        "result = values"
    ),
    (
        "values = []\n"
        "for loss in losses:\n"
        "    values.append((loss > 0.5).item())\n"
        "    values.append((loss * 9).long().item())\n"
        "result = values"
    ): (
        "values = []\n"
        "for loss in losses:\n"
        "    values.append((loss > 0.5))\n"
        "    values.append((loss * 9).long())\n"
        "for dtype in {v.dtype for v in values if torch.is_tensor(v)}:\n"
        "    at = [k for k, v in enumerate(values) if torch.is_tensor(v) and v.dtype == dtype]\n"
        "    for k, v in zip(at, torch.stack([values[k] for k in at]).tolist()):\n"
        "        values[k] = v\n"
        "result = values"
    ),
    (
        "rows = []\n"
        "for loss in losses:\n"
        '    rows.append({"a": loss.item(), "n": (loss * 9).long().item(), "b": (loss > 0.5).item()})\n'
        "result = rows"
    ): (
        "rows = []\n"
        "for loss in losses:\n"
        '    rows.append({"a": loss.detach().clone(), "n": (loss * 9).long(), "b": (loss > 0.5)})\n'
        "for dtype in {v.dtype for row in rows for v in row.values() if torch.is_tensor(v)}:\n"
        "    cells = [(row, k) for row in rows for k, v in row.items() if torch.is_tensor"
        "(v) and v.dtype == dtype]\n"
        "    for (row, k), v in zip(cells, torch.stack([row[k] for row, k in cells]).tolist()):\n"
        "        row[k] = v\n"
        "result = rows"
    ),
    ("rows = []\nfor loss in losses:\n    rows.append((loss.item(), (loss * 9).long().item()))\nresult = rows"): (
        "rows = []\n"
        "for loss in losses:\n"
        "    rows.append((loss.detach().clone(), (loss * 9).long()))\n"
        "for dtype in {v.dtype for row in rows for v in row if torch.is_tensor(v)}:\n"
        "    cells = [(i, k) for i, row in enumerate(rows) for k, v in enumerate(row) if "
        "torch.is_tensor(v) and v.dtype == dtype]\n"
        "    for (i, k), v in zip(cells, torch.stack([rows[i][k] for i, k in cells]).tolist()):\n"
        "        rows[i] = (*rows[i][:k], v, *rows[i][k + 1 :])\n"
        "result = rows"
    ),
    (
        'table = {"a": [], "n": []}\n'
        "for loss in losses:\n"
        '    table["a"].append(loss.item())\n'
        '    table["n"].append((loss * 9).long().item())\n'
        "result = table"
    ): (
        'table = {"a": [], "n": []}\n'
        "for loss in losses:\n"
        '    table["a"].append(loss.detach().clone())\n'
        '    table["n"].append((loss * 9).long())\n'
        "for values in table.values():\n"
        "    for dtype in {v.dtype for v in values if torch.is_tensor(v)}:\n"
        "        at = [k for k, v in enumerate(values) if torch.is_tensor(v) and v.dtype == dtype]\n"
        "        for k, v in zip(at, torch.stack([values[k] for k in at]).tolist()):\n"
        "            values[k] = v\n"
        "result = table"
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
        '    stats["a"] += loss.detach().double()\n'
        '    stats["n"] += (loss * 9).long()\n'
        "stats.update({k: v.item() for k, v in stats.items() if torch.is_tensor(v)})\n"
        "result = stats"
    ),
    ('state = {"log": []}\nfor loss in losses:\n    state["log"].append(loss.item())\nresult = state'): (
        'state = {"log": []}\n'
        "for loss in losses:\n"
        '    state["log"].append(loss.detach().clone())\n'
        "for values in state.values():\n"
        "    for dtype in {v.dtype for v in values if torch.is_tensor(v)}:\n"
        "        at = [k for k, v in enumerate(values) if torch.is_tensor(v) and v.dtype == dtype]\n"
        "        for k, v in zip(at, torch.stack([values[k] for k in at]).tolist()):\n"
        "            values[k] = v\n"
        "result = state"
    ),
}


@pytest.mark.parametrize("body", FIXED)
def test_it_is_rewritten(programs: dict[str, Rewritten], body: str) -> None:
    """It waits less, and gives the same result."""
    program = programs[body]
    assert program.text == FIXED[body] + END
    assert program.waits[1] < program.waits[0]
    assert program.results[0] == program.results[1]
