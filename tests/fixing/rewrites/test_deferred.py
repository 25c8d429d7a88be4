"""Numbers that are read in every step and needed after the loop: sums, averages, extremes."""

from __future__ import annotations

from syncscan.fixing.rewrites.rarer_reads import deferred_read
from tests.each import each
from tests.fixing.example import Rewritten

REWRITE = deferred_read
KEPT: dict[str, str] = {}
END = "\nresult = repr(result)"
FIXED = {
    (
        "total, shown = 0.0, ''\n"
        "for k, loss in enumerate(losses):\n"
        "    total += loss.item()\n"
        "    if k % 4 == 3:\n"
        "        mean = total / 4\n"
        "        steps = k + 1\n"
        "        shown += 'step {} loss {:.3f}'.format(steps, mean)\n"
        "        total = 0.0\n"
        "result = shown"
    ): (
        "total, shown = 0.0, ''\n"
        "for k, loss in enumerate(losses):\n"
        "    total += loss.double()\n"
        "    if k % 4 == 3:\n"
        "        mean = total / 4\n"
        "        mean = float(mean)\n"
        "        steps = k + 1\n"
        "        shown += 'step {} loss {:.3f}'.format(steps, mean)\n"
        "        total = 0.0\n"
        "result = shown"
    ),
    (
        "correct, shown = 0, []\nfor epoch in range(4):\n    correct = 0\n    for loss in losses[: 6 * (epoch < 4)]:\n"
        "        correct += (loss > 0.5).sum().item()\n"
        "    shown.append(f'{correct / 40:.2%}')\n"
        "result = shown"
    ): (
        "correct, shown = 0, []\nfor epoch in range(4):\n    correct = 0\n    for loss in losses[: 6 * (epoch < 4)]:\n"
        "        correct += (loss > 0.5).sum()\n"
        "    correct = int(correct)\n"
        "    shown.append(f'{correct / 40:.2%}')\n"
        "result = shown"
    ),
    (  # a gradient may flow where another run doesn't turn gradients off
        "def score(loss):\n    return loss.sqrt().item()\ndef mean():\n    total = 0.0\n    for loss in losses:\n"
        "        total += score(loss)\n    return total\nwith torch.no_grad():\n    result = mean()"
    ): (
        "def score(loss):\n    return loss.sqrt().detach().double()\ndef mean():\n    total = 0.0\n"
        "    for loss in losses:\n        total += score(loss)\n    total = float(total)\n    return total\n"
        "with torch.no_grad():\n    result = mean()"
    ),
    ("total = 0.0\nwith torch.no_grad():\n    for loss in losses:\n        total += loss.item()\nresult = total"): (
        "total = 0.0\nwith torch.no_grad():\n    for loss in losses:\n        total += loss.double()\n"
        "    total = float(total)\nresult = total"
    ),
    ("total = 0.0\nfor loss in losses:\n    total += loss.item() / max((loss < 2).sum().item(), 1)\nresult = total"): (
        "total = 0.0\nfor loss in losses:\n"
        "    total += loss.double() / max((loss < 2).sum().item(), 1)\n"
        "total = float(total)\nresult = total"
    ),
    ("STEPS = 12\nfor step in range(STEPS):\n    last = losses[step].item()\nresult = last"): (
        "STEPS = 12\nfor step in range(STEPS):\n    last = losses[step].clone()\nlast = float(last)\nresult = last"
    ),
    (
        "best = 0.99 * max(loss.item() for loss in losses)\n"
        "for loss in losses:\n"
        "    if loss.item() > best:\n"
        "        best = loss.item()\n"
        "result = best"
    ): (
        "best = 0.99 * max(loss.item() for loss in losses)\n"
        "for loss in losses:\n"
        "    best = torch.where(loss.double() > best, loss.double(), best)\n"
        "best = float(best)\n"
        "result = best"
    ),
    (
        "import argparse\n"
        "options = argparse.Namespace(steps=3)\n"
        "total = 0.0\n"
        "for loss in losses:\n"
        "    total += loss.item()\n"
        "result = total, vars(options)"
    ): (
        "import argparse\n"
        "options = argparse.Namespace(steps=3)\n"
        "total = 0.0\n"
        "for loss in losses:\n"
        "    total += loss.double()\n"
        "total = float(total)\n"
        "result = total, vars(options)"
    ),
    (
        "values = []\n"
        "for k in range(4):\n"
        "    loss = (x * k).sum()\n"
        "    same = loss\n"
        "    values.append(loss.item())\n"
        "    if k < 0:\n"
        "        same.add_(1)\n"
        "result = values"
    ): (
        "values = []\n"
        "for k in range(4):\n"
        "    loss = (x * k).sum()\n"
        "    same = loss\n"
        "    values.append(loss.clone())\n"
        "    if k < 0:\n"
        "        same.add_(1)\n"
        "values = torch.stack(values).tolist() if values else []\n"
        "result = values"
    ),
    ("total = 0.0\nfor loss in losses:\n    total += loss.item()\nresult = total / len(losses)"): (
        "total = 0.0\n"
        "for loss in losses:\n"
        "    total += loss.double()\n"
        "total = float(total)\n"
        "result = total / len(losses)"
    ),
    ('best = float("inf")\nfor loss in losses:\n    best = min(best, loss.item())\nresult = best'): (
        'best = float("inf")\n'
        "for loss in losses:\n"
        "    best_now = loss.double()\n"
        "    best = torch.where(best_now < best, best_now, best)\n"
        "best = float(best)\n"
        "result = best"
    ),
    (
        "average = None\n"
        "for loss in losses:\n"
        "    value = loss.item()\n"
        "    average = value if average is None else 0.9 * average + 0.1 * value\n"
        "result = average"
    ): (
        "average = None\n"
        "for loss in losses:\n"
        "    value = loss.double()\n"
        "    average = value if average is None else 0.9 * average + 0.1 * value\n"
        "average = average.item() if torch.is_tensor(average) else average\n"
        "result = average"
    ),
    ("hits = 0\nfor loss in losses:\n    hits += (loss > 0.5).sum().item()\nresult = hits / 12"): (
        "hits = 0\nfor loss in losses:\n    hits += (loss > 0.5).sum()\nhits = int(hits)\nresult = hits / 12"
    ),
    (
        'best = float("inf")\n'
        "for loss in losses:\n"
        "    value = loss.item()\n"
        "    if value < best:\n"
        "        best = value\n"
        "result = best"
    ): (
        'best = float("inf")\n'
        "for loss in losses:\n"
        "    value = loss.double()\n"
        "    best = torch.where(value < best, value, best)\n"
        "best = float(best)\n"
        "result = best"
    ),
    ("total = 0\nfor loss in losses:\n    total += int((loss > 0.5).item())\nresult = total"): (
        "total = 0\nfor loss in losses:\n    total += (loss > 0.5).long()\ntotal = int(total)\nresult = total"
    ),
    ("total = 0\nfor loss in losses:\n    total += (loss * 7).long().item()\nresult = total // 2, total % 3"): (
        "total = 0\n"
        "for loss in losses:\n"
        "    total += (loss * 7).long()\n"
        "total = int(total)\n"
        "result = total // 2, total % 3"
    ),
    (
        "result = 0.0\n"
        "for k in range(3):\n"
        "    part = 0.0\n"
        "    for loss in losses:\n"
        "        part += loss.item()\n"
        "    result = max(result, part / 2)"
    ): (
        "result = 0.0\n"
        "for k in range(3):\n"
        "    part = 0.0\n"
        "    for loss in losses:\n"
        "        part += loss.double()\n"
        "    part = float(part)\n"
        "    result = max(result, part / 2)"
    ),
    ('total = 0.0\nfor loss in losses:\n    total = total * 0.5 + float(loss) * 0.5\nresult = f"{total:.6f}"'): (
        "total = 0.0\n"
        "for loss in losses:\n"
        "    total = total * 0.5 + loss.double() * 0.5\n"
        "total = float(total)\n"
        'result = f"{total:.6f}"'
    ),
    ("total, last = 0.0, 0.0\nfor loss in losses:\n    last = loss.item()\n    total += last\nresult = total, last"): (
        "total, last = 0.0, 0.0\n"
        "for loss in losses:\n"
        "    last = loss.double()\n"
        "    total += last\n"
        "last = float(last)\n"
        "total = float(total)\n"
        "result = total, last"
    ),
    ("total = 0.0\nfor loss in losses:\n    total += (loss > 0.5).sum().item() / 7\nresult = total"): (
        "total = 0.0\n"
        "for loss in losses:\n"
        "    total += (loss > 0.5).sum().double() / 7\n"
        "total = float(total)\n"
        "result = total"
    ),
    (
        "total = 0.0\n"
        "for step, loss in enumerate(losses):\n"
        "    if step > 3:\n"
        "        total += loss.item()\n"
        "result = total"
    ): (
        "total = 0.0\n"
        "for step, loss in enumerate(losses):\n"
        "    if step > 3:\n"
        "        total += loss.double()\n"
        "total = float(total)\n"
        "result = total"
    ),
    (
        "total = 0.0\n"
        "for step, loss in enumerate(losses):\n"
        "    if step == 8:\n"
        "        break\n"
        "    total += loss.item()\n"
        "else:\n"
        "    total = -1.0\n"
        "result = total"
    ): (
        "total = 0.0\n"
        "for step, loss in enumerate(losses):\n"
        "    if step == 8:\n"
        "        break\n"
        "    total += loss.double()\n"
        "else:\n"
        "    total = -1.0\n"
        "total = total.item() if torch.is_tensor(total) else total\n"
        "result = total"
    ),
    ("total = 0.0\nfor loss in losses:\n    value = loss.item()\n    total += max(value, 0.5)\nresult = total"): (
        "total = 0.0\n"
        "for loss in losses:\n"
        "    value = loss.double()\n"
        "    total += torch.where(0.5 > value, 0.5, value)\n"
        "total = float(total)\n"
        "result = total"
    ),
    ("total = 0.0\nfor loss in losses:\n    total += abs(loss.item() - 0.5) ** 2\nresult = total"): (
        "total = 0.0\n"
        "for loss in losses:\n"
        "    total += abs(loss.double() - 0.5) ** 2\n"
        "total = float(total)\n"
        "result = total"
    ),
    ("total = 0.0\nfor loss in losses:\n    total += loss.item() ** 0.5\nresult = total"): (
        "total = 0.0\nfor loss in losses:\n    total += loss.double() ** 0.5\ntotal = float(total)\nresult = total"
    ),
    ("total, n = 0.0, 0\nfor loss in losses:\n    total += loss.item() * (n + 1)\n    n += 1\nresult = total / n"): (
        "total, n = 0.0, 0\n"
        "for loss in losses:\n"
        "    total += loss.double() * (n + 1)\n"
        "    n += 1\n"
        "total = float(total)\n"
        "result = total / n"
    ),
    (
        "h = torch.rand(12, device=device).half().unbind()\n"
        "total = 0.0\n"
        "for loss in h:\n"
        "    total += loss.item() * 1000\n"
        "result = total"
    ): (
        "h = torch.rand(12, device=device).half().unbind()\n"
        "total = 0.0\n"
        "for loss in h:\n"
        "    total += loss.double() * 1000\n"
        "total = float(total)\n"
        "result = total"
    ),
    ("total = 0.0\nfor loss in losses:\n    total -= loss.item()\nresult = total"): (
        "total = 0.0\nfor loss in losses:\n    total -= loss.double()\ntotal = float(total)\nresult = total"
    ),
    (
        "scale = torch.tensor(2.0, device=device)\n"
        "total = 0.0\n"
        "for step in range(5):\n"
        "    y = y * scale.item()\n"
        "    scale *= 1.5\n"
        "result = y.tolist()"
    ): (
        "scale = torch.tensor(2.0, device=device)\n"
        "total = 0.0\n"
        "for step in range(5):\n"
        "    y = y * scale.clone()\n"
        "    scale *= 1.5\n"
        "result = y.tolist()"
    ),
    (
        "total = 0.0\n"
        "losses_seen = iter(losses)\n"
        "while True:\n"
        "    loss = next(losses_seen, None)\n"
        "    if loss is None:\n"
        "        break\n"
        "    total += loss.item()\n"
        "result = total"
    ): (
        "total = 0.0\n"
        "losses_seen = iter(losses)\n"
        "while True:\n"
        "    loss = next(losses_seen, None)\n"
        "    if loss is None:\n"
        "        break\n"
        "    total += loss.double()\n"
        "total = float(total)\n"
        "result = total"
    ),
    (
        "total = 0.0\n"
        "for loss in losses:\n"
        "    with torch.no_grad():\n"
        "        total += loss.cpu().item()\n"
        "result = total"
    ): (
        "total = 0.0\n"
        "for loss in losses:\n"
        "    with torch.no_grad():\n"
        "        total += loss.double()\n"
        "total = float(total)\n"
        "result = total"
    ),
    ("total = 0.0\nfor row in x:\n    total += row[0].item() + row[1].item() * 2\nresult = total"): (
        "total = 0.0\n"
        "for row in x:\n"
        "    total += row[0].double() + row[1].double() * 2\n"
        "total = float(total)\n"
        "result = total"
    ),
}


@each("body", FIXED)
def test_it_is_rewritten(programs: dict[str, Rewritten], body: str) -> None:
    """It waits less, and gives the same result."""
    program = programs[body]
    assert program.text == FIXED[body] + END
    assert program.waits[1] < program.waits[0]
    assert program.results[0] == program.results[1]
