"""Numbers that functions return and objects collect: read where the loop of the caller ends."""

from __future__ import annotations

import pytest

from syncscan.fixing.rewrites.rarer_reads import deferred_read
from tests.each import each
from tests.fixing.example import Rewritten

REWRITE = deferred_read
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
        "        seen.append(loss.clone())\n"
        "    seen = torch.stack(seen).tolist() if seen else []\n"
        "    if verbose:\n"
        "        return f'{sum(seen):.3f} of {len(seen)}'\n"
        "    return f'{sum(seen):.3f}'\n"
        "result = train(False)"
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
        "    return (t > 0.5).float().mean().double()\n"
        "total = 0.0\n"
        "for loss in losses:\n"
        "    total += accuracy(loss)\n"
        "total = float(total)\n"
        "result = total"
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
        "        total = total + loss.double()\n"
        "        if step == 8:\n"
        "            total = float(total)\n"
        "            return total\n"
        "    total = float(total)\n"
        "    return total\n"
        "result = run()"
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
