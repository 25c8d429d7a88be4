"""Numbers that functions return and objects collect: read where the loop of the caller ends."""

from __future__ import annotations

import pytest

from syncscan.fixing.rewrites import deferred
from tests.each import each
from tests.fixing.example import Rewritten

REWRITE = deferred
KEPT: dict[str, str] = {
    "the module's own lines would read a meter back": (
        "class Meter:\n"
        "    def __init__(self):\n"
        "        self.sum = 0.0\n"
        "    def update(self, value):\n"
        "        self.sum += value\n"
        "meter = Meter()\n"
        "for loss in losses:\n"
        "    meter.update(loss.item())\n"
        "result = meter.sum"
    ),
    "a function fills it": (
        "def note(values, loss):\n"
        "    values.append(loss.item())\n"
        "history = []\n"
        "for loss in losses:\n"
        "    note(history, loss)\n"
        "result = max(history)"
    ),
    "a function makes its rows": (
        "def step(loss):\n"
        '    return {"loss": loss.item(), "n": 1}\n'
        "history = []\n"
        "for loss in losses:\n"
        "    history.append(step(loss))\n"
        "result = history"
    ),
}
END = "\nresult = repr(result)"
FIXED = {
    (
        "class Meter:\n"
        "    def __init__(self):\n"
        "        self.sum = 0.0\n"
        "    def __call__(self, value):\n"
        "        self.sum += value\n"
        "def train():\n"
        "    meter, steps = Meter(), 0\n"
        "    for loss in losses:\n"
        "        meter(loss.item())\n"
        "        steps += 1\n"
        "    return meter.sum, steps\n"
        "result = train()"
    ): (
        "class Meter:\n"
        "    def __init__(self):\n"
        "        self.sum = 0.0\n"
        "    def __call__(self, value):\n"
        "        self.sum += value\n"
        "def train():\n"
        "    meter, steps = Meter(), 0\n"
        "    for loss in losses:\n"
        "        meter(loss.detach().double())\n"
        "        steps += 1\n"
        "    meter.sum = meter.sum.item() if torch.is_tensor(meter.sum) else meter.sum\n"
        "    return meter.sum, steps\n"
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
        "def train():\n"
        "    one, two, three = Meter(), Meter(), Meter()\n"
        "    for k, loss in enumerate(losses):\n"
        "        one.update(loss.item())\n"
        "        two.update(loss.square().item())\n"
        "        three.update(loss.sqrt().item())\n"
        "        if k % 4 == 3:\n"
        '            text = " ".join(str(m) for m in (one, two, three))\n'
        "    return text, one.total, two.total, three.total\n"
        "result = train()"
    ): (
        "class Meter:\n"
        "    def __init__(self):\n"
        "        self.total = 0.0\n"
        "    def update(self, value):\n"
        "        self.total += value\n"
        "    def __str__(self):\n"
        '        return f"{self.total:.3f}"\n'
        "def train():\n"
        "    one, two, three = Meter(), Meter(), Meter()\n"
        "    for k, loss in enumerate(losses):\n"
        "        one.update(loss.detach().double())\n"
        "        two.update(loss.square().detach().double())\n"
        "        three.update(loss.sqrt().detach().double())\n"
        "        if k % 4 == 3:\n"
        '            text = " ".join(str(m) for m in (one, two, three))\n'
        "    one.total = one.total.item() if torch.is_tensor(one.total) else one.total\n"
        "    two.total = two.total.item() if torch.is_tensor(two.total) else two.total\n"
        "    three.total = three.total.item() if torch.is_tensor(three.total) else three.total\n"
        "    return text, one.total, two.total, three.total\n"
        "result = train()"
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
        "def train():\n"
        "    meter = Meter()\n"
        "    for loss in losses:\n"
        "        meter.update(loss.item())\n"
        "    return meter.mean()\n"
        "result = train()"
    ): (
        "class Meter:\n"
        "    def __init__(self):\n"
        "        self.total, self.count = 0.0, 0\n"
        "    def update(self, value):\n"
        "        self.total += value\n"
        "        self.count += 1\n"
        "    def mean(self):\n"
        "        return self.total / self.count\n"
        "def train():\n"
        "    meter = Meter()\n"
        "    for loss in losses:\n"
        "        meter.update(loss.detach().double())\n"
        "    meter.total = meter.total.item() if torch.is_tensor(meter.total) else meter.total\n"
        "    return meter.mean()\n"
        "result = train()"
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
        "def train():\n"
        "    state = State()\n"
        "    for loss in losses:\n"
        "        state.total += loss.item()\n"
        "        state.best = min(state.best, loss.item())\n"
        "    return dataclasses.asdict(state)\n"
        "result = train()"
    ): (
        "import dataclasses\n"
        "@dataclasses.dataclass\n"
        "class State:\n"
        "    total: float = 0.0\n"
        "    best: float = 9.0\n"
        "def train():\n"
        "    state = State()\n"
        "    for loss in losses:\n"
        "        state.total += loss.detach().double()\n"
        "        best_now = loss.detach().double()\n"
        "        state.best = torch.where(best_now < state.best, best_now, state.best)\n"
        "    state.total = state.total.item() if torch.is_tensor(state.total) else state.total\n"
        "    state.best = state.best.item() if torch.is_tensor(state.best) else state.best\n"
        "    return dataclasses.asdict(state)\n"
        "result = train()"
    ),
}


@each("body", FIXED)
def test_it_is_rewritten(programs: dict[str, Rewritten], body: str) -> None:
    """It waits less, and gives the same result."""
    program = programs[body]
    assert program.text == FIXED[body] + END
    assert program.waits[1] < program.waits[0]
    assert program.results[0] == program.results[1]


@pytest.mark.parametrize("name", KEPT)
def test_it_stays(programs: dict[str, Rewritten], name: str) -> None:
    """Not a byte changes: a line or two after the loop couldn't read it."""
    assert programs[name].text == KEPT[name] + END
