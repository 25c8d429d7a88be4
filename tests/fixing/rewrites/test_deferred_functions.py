"""Numbers that functions return and objects collect: read where the loop of the caller ends."""

from __future__ import annotations

import pytest

from syncscan.fixing.rewrites import deferred
from tests.fixing.example import Rewritten

REWRITE = deferred
KEPT: dict[str, str] = {}
END = "\nresult = repr(result)"
FIXED = {
    (
        "def step(loss):\n"
        "    return loss.item()\n"
        "values = [step(loss) for loss in losses]\n"
        "total = sum(step(loss) for loss in losses)\n"
        "result = values, total"
    ): (
        "def step(loss):\n"
        "    return loss.detach().double()\n"
        "values = [step(loss) for loss in losses]\n"
        "for dtype in {v.dtype for v in values if torch.is_tensor(v)}:\n"
        "    at = [k for k, v in enumerate(values) if torch.is_tensor(v) and v.dtype == dtype]\n"
        "    for k, v in zip(at, torch.stack([values[k] for k in at]).tolist()):\n"
        "        values[k] = v\n"
        "total = sum(step(loss) for loss in losses)\n"
        "total = float(total)\n"
        "result = values, total"
    ),
    (
        "class Meter:\n"
        "    def __init__(self):\n"
        "        self.sum = 0.0\n"
        "    def __call__(self, value):\n"
        "        self.sum += value\n"
        "meter, steps = Meter(), 0\n"
        "for loss in losses:\n"
        "    meter(loss.item())\n"
        "    steps += 1\n"
        "result = meter.sum, steps"
    ): (
        "class Meter:\n"
        "    def __init__(self):\n"
        "        self.sum = 0.0\n"
        "    def __call__(self, value):\n"
        "        self.sum += value\n"
        "meter, steps = Meter(), 0\n"
        "for loss in losses:\n"
        "    meter(loss.detach().double())\n"
        "    steps += 1\n"
        "meter.sum = meter.sum.item() if torch.is_tensor(meter.sum) else meter.sum\n"
        "result = meter.sum, steps"
    ),
    (
        "def train():\n"
        "    total, recent = 0.0, []\n"
        "    def note(value):\n"
        "        nonlocal total\n"
        "        total += value\n"
        "        recent.append(value)\n"
        "    for loss in losses:\n"
        "        note(loss.item())\n"
        "    return total, recent\n"
        "result = train()"
    ): (
        "def train():\n"
        "    total, recent = 0.0, []\n"
        "    def note(value):\n"
        "        nonlocal total\n"
        "        total += value\n"
        "        recent.append(value)\n"
        "    for loss in losses:\n"
        "        note(loss.detach().double())\n"
        "    total = float(total)\n"
        "    for dtype in {v.dtype for v in recent if torch.is_tensor(v)}:\n"
        "        at = [k for k, v in enumerate(recent) if torch.is_tensor(v) and v.dtype == dtype]\n"
        "        for k, v in zip(at, torch.stack([recent[k] for k in at]).tolist()):\n"
        "            recent[k] = v\n"
        "    return total, recent\n"
        "result = train()"
    ),
    (
        "class Meter:\n"
        "    def __init__(self):\n"
        "        self.total = 0.0\n"
        "    def update(self, value):\n"
        "        self.total += value\n"
        "    def __str__(self):\n"
        '        return f"{self.total:.3f}"\n'
        "one, two, three = Meter(), Meter(), Meter()\n"
        "for k, loss in enumerate(losses):\n"
        "    one.update(loss.item())\n"
        "    two.update(loss.square().item())\n"
        "    three.update(loss.sqrt().item())\n"
        "    if k % 4 == 3:\n"
        '        text = " ".join(str(m) for m in (one, two, three))\n'
        "result = text, one.total, two.total, three.total"
    ): (
        "class Meter:\n"
        "    def __init__(self):\n"
        "        self.total = 0.0\n"
        "    def update(self, value):\n"
        "        self.total += value\n"
        "    def __str__(self):\n"
        '        return f"{self.total:.3f}"\n'
        "one, two, three = Meter(), Meter(), Meter()\n"
        "for k, loss in enumerate(losses):\n"
        "    one.update(loss.detach().double())\n"
        "    two.update(loss.square().detach().double())\n"
        "    three.update(loss.sqrt().detach().double())\n"
        "    if k % 4 == 3:\n"
        '        text = " ".join(str(m) for m in (one, two, three))\n'
        "one.total = one.total.item() if torch.is_tensor(one.total) else one.total\n"
        "two.total = two.total.item() if torch.is_tensor(two.total) else two.total\n"
        "three.total = three.total.item() if torch.is_tensor(three.total) else three.total\n"
        "result = text, one.total, two.total, three.total"
    ),
    (
        "def train(verbose):\n"
        "    seen = []\n"
        "    for loss in losses:\n"
        "        seen.append(loss.item())\n"
        "    if verbose:\n"
        "        return f'{sum(seen):.3f} of {len(seen)}'\n"
        "    return f'{sum(seen):.3f}'\n"
        "result = train(False)"
    ): (
        "def train(verbose):\n"
        "    seen = []\n"
        "    for loss in losses:\n"
        "        seen.append(loss.detach().clone())\n"
        "    seen = torch.stack(seen).tolist() if seen else []\n"
        "    if verbose:\n"
        "        return f'{sum(seen):.3f} of {len(seen)}'\n"
        "    return f'{sum(seen):.3f}'\n"
        "result = train(False)"
    ),
    (
        "def step(t):\n"
        '    return {"loss": t.item(), "n": 3}\n'
        'total = {"loss": 0.0, "n": 0}\n'
        "for loss in losses:\n"
        "    for key, value in step(loss).items():\n"
        "        total[key] += value\n"
        "result = total"
    ): (
        "def step(t):\n"
        '    return {"loss": t.detach().double(), "n": 3}\n'
        'total = {"loss": 0.0, "n": 0}\n'
        "for loss in losses:\n"
        "    for key, value in step(loss).items():\n"
        "        total[key] += value\n"
        "total.update({k: v.item() for k, v in total.items() if torch.is_tensor(v)})\n"
        "result = total"
    ),
    (
        "def accuracy(t):\n"
        "    return (t > 0.5).float().mean().item()\n"
        "total = 0.0\n"
        "for loss in losses:\n"
        "    total += accuracy(loss)\n"
        "result = total"
    ): (
        "def accuracy(t):\n"
        "    return (t > 0.5).float().mean().detach().double()\n"
        "total = 0.0\n"
        "for loss in losses:\n"
        "    total += accuracy(loss)\n"
        "total = float(total)\n"
        "result = total"
    ),
    (
        "class Meter:\n"
        "    def __init__(self):\n"
        "        self.total, self.count = 0.0, 0\n"
        "    def update(self, value):\n"
        "        self.total += value\n"
        "        self.count += 1\n"
        "    def mean(self):\n"
        "        return self.total / self.count\n"
        "meter = Meter()\n"
        "for loss in losses:\n"
        "    meter.update(loss.item())\n"
        "result = meter.mean()"
    ): (
        "class Meter:\n"
        "    def __init__(self):\n"
        "        self.total, self.count = 0.0, 0\n"
        "    def update(self, value):\n"
        "        self.total += value\n"
        "        self.count += 1\n"
        "    def mean(self):\n"
        "        return self.total / self.count\n"
        "meter = Meter()\n"
        "for loss in losses:\n"
        "    meter.update(loss.detach().double())\n"
        "meter.total = meter.total.item() if torch.is_tensor(meter.total) else meter.total\n"
        "result = meter.mean()"
    ),
    (
        "def note(values, loss):\n"
        "    values.append(loss.item())\n"
        "history = []\n"
        "for loss in losses:\n"
        "    note(history, loss)\n"
        "result = max(history)"
    ): (
        "def note(values, loss):\n"
        "    values.append(loss.detach().clone())\n"
        "history = []\n"
        "for loss in losses:\n"
        "    note(history, loss)\n"
        "for dtype in {v.dtype for v in history if torch.is_tensor(v)}:\n"
        "    at = [k for k, v in enumerate(history) if torch.is_tensor(v) and v.dtype == dtype]\n"
        "    for k, v in zip(at, torch.stack([history[k] for k in at]).tolist()):\n"
        "        history[k] = v\n"
        "result = max(history)"
    ),
    (
        "def run():\n"
        "    total = 0.0\n"
        "    for step, loss in enumerate(losses):\n"
        "        total += loss.item()\n"
        "        if step == 8:\n"
        "            return total\n"
        "    return total\n"
        "result = run()"
    ): (
        "def run():\n"
        "    total = 0.0\n"
        "    for step, loss in enumerate(losses):\n"
        "        total += loss.detach().double()\n"
        "        if step == 8:\n"
        "            total = float(total)\n"
        "            return total\n"
        "    total = float(total)\n"
        "    return total\n"
        "result = run()"
    ),
    (
        "def step(loss):\n"
        '    return {"loss": loss.item(), "n": 1}\n'
        "history = []\n"
        "for loss in losses:\n"
        "    history.append(step(loss))\n"
        "result = history"
    ): (
        "def step(loss):\n"
        '    return {"loss": loss.detach().clone(), "n": 1}\n'
        "history = []\n"
        "for loss in losses:\n"
        "    history.append(step(loss))\n"
        "for dtype in {v.dtype for row in history for v in row.values() if torch.is_tensor(v)}:\n"
        "    cells = [(row, k) for row in history for k, v in row.items() if torch.is_ten"
        "sor(v) and v.dtype == dtype]\n"
        "    for (row, k), v in zip(cells, torch.stack([row[k] for row, k in cells]).tolist()):\n"
        "        row[k] = v\n"
        "result = history"
    ),
    (
        "def step(loss):\n"
        "    return loss.item(), loss\n"
        "total = 0.0\n"
        "for loss in losses:\n"
        "    value, other = step(loss)\n"
        "    total += value\n"
        "result = total"
    ): (
        "def step(loss):\n"
        "    return loss.detach().double(), loss\n"
        "total = 0.0\n"
        "for loss in losses:\n"
        "    value, other = step(loss)\n"
        "    total += value\n"
        "total = float(total)\n"
        "result = total"
    ),
    (
        "import dataclasses\n"
        "@dataclasses.dataclass\n"
        "class State:\n"
        "    total: float = 0.0\n"
        "    best: float = 9.0\n"
        "state = State()\n"
        "for loss in losses:\n"
        "    state.total += loss.item()\n"
        "    state.best = min(state.best, loss.item())\n"
        "result = dataclasses.asdict(state)"
    ): (
        "import dataclasses\n"
        "@dataclasses.dataclass\n"
        "class State:\n"
        "    total: float = 0.0\n"
        "    best: float = 9.0\n"
        "state = State()\n"
        "for loss in losses:\n"
        "    state.total += loss.detach().double()\n"
        "    best_now = loss.detach().double()\n"
        "    state.best = torch.where(best_now < state.best, best_now, state.best)\n"
        "state.total = state.total.item() if torch.is_tensor(state.total) else state.total\n"
        "state.best = state.best.item() if torch.is_tensor(state.best) else state.best\n"
        "result = dataclasses.asdict(state)"
    ),
    (
        "import dataclasses\n"
        "@dataclasses.dataclass\n"
        "class State:\n"
        "    total: float = 0.0\n"
        "    def __post_init__(self):\n"
        "        self.seen = 0\n"
        "    def add(self, value):\n"
        "        self.total += value\n"
        "        self.seen += self.total > 2\n"
        "state = State()\n"
        "for loss in losses:\n"
        "    state.add(loss.item())\n"
        "result = state.seen"
    ): (
        "import dataclasses\n"
        "@dataclasses.dataclass\n"
        "class State:\n"
        "    total: float = 0.0\n"
        "    def __post_init__(self):\n"
        "        self.seen = 0\n"
        "    def add(self, value):\n"
        "        self.total += value\n"
        "        self.seen += (self.total > 2).long()\n"
        "state = State()\n"
        "for loss in losses:\n"
        "    state.add(loss.detach().double())\n"
        "state.total = state.total.item() if torch.is_tensor(state.total) else state.total\n"
        "state.seen = state.seen.item() if torch.is_tensor(state.seen) else state.seen\n"
        "result = state.seen"
    ),
}


@pytest.mark.parametrize("body", FIXED)
def test_it_is_rewritten(programs: dict[str, Rewritten], body: str) -> None:
    """It waits less, and gives the same result."""
    program = programs[body]
    assert program.text == FIXED[body] + END
    assert program.waits[1] < program.waits[0]
    assert program.results[0] == program.results[1]
