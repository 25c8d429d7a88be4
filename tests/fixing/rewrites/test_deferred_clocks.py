"""Numbers that are read in a loop whose time is measured: the clocks go on measuring what was waited for."""

from __future__ import annotations

import pytest

from syncscan.fixing.rewrites.rarer_reads import deferred_read
from tests.fixing.example import Rewritten

REWRITE = deferred_read
HEAD = "import time\nstart, total, result = time.time(), 0.0, []\n"
FIXED = {
    f"{HEAD}for loss in losses:\n    total += loss.item()\nresult = total, time.time() > start": (
        f"{HEAD}for loss in losses:\n    total += loss.double()\ntotal = float(total)\n"
        "result = total, time.time() > start"
    ),
    (
        f"{HEAD}for epoch in range(3):\n    total = 0.0\n    for loss in losses:\n        total += loss.item()\n"
        "    result.append((total, time.time() > start))"
    ): (
        f"{HEAD}for epoch in range(3):\n    total = 0.0\n    for loss in losses:\n"
        "        total += loss.double()\n    total = float(total)\n"
        "    result.append((total, time.time() > start))"
    ),
    (
        f"{HEAD}for epoch in range(3):\n    begin, total = time.time(), 0.0\n    for loss in losses:\n"
        "        total += loss.item()\n    result.append(total)\n    took = time.time() - begin\nresult = result"
    ): (
        f"{HEAD}for epoch in range(3):\n    begin, total = time.time(), 0.0\n    for loss in losses:\n"
        "        total += loss.double()\n    total = float(total)\n"
        "    result.append(total)\n    took = time.time() - begin\nresult = result"
    ),
    (
        f"{HEAD}for step, loss in enumerate(losses):\n    total += loss.item()\n    if step % 6 == 5:\n"
        "        mean = total / 6\n        took = time.time() - start\n"
        "        shown = '{:.3f} {}'.format(mean, took > 0)\n"
        "        total, start = 0.0, time.time()\nresult = shown"
    ): (
        f"{HEAD}for step, loss in enumerate(losses):\n    total += loss.double()\n    if step % 6 == 5:\n"
        "        mean = total / 6\n        mean = float(mean)\n"
        "        took = time.time() - start\n"
        "        shown = '{:.3f} {}'.format(mean, took > 0)\n"
        "        total, start = 0.0, time.time()\nresult = shown"
    ),
    (
        f"{HEAD}for loss in losses:\n    torch.cuda.synchronize()\n    begin = time.time()\n"
        "    torch.cuda.synchronize()\n    took = time.time() - begin\n    total += loss.item()\nresult = total"
    ): (
        f"{HEAD}for loss in losses:\n    torch.cuda.synchronize()\n    begin = time.time()\n"
        "    torch.cuda.synchronize()\n    took = time.time() - begin\n    total += loss.double()\n"
        "total = float(total)\nresult = total"
    ),
}
KEPT = {
    "a step is timed from its begin to its end": (
        f"{HEAD}for loss in losses:\n    begin = time.time()\n    total += loss.item()\n"
        "    result.append(time.time() >= begin)\nresult = total, result"
    ),
    "a clock is read before the number is written": (
        f"{HEAD}for step, loss in enumerate(losses):\n    total += loss.item()\n    if step % 6 == 5:\n"
        "        took = time.time() - start\n        result.append(f'{total:.3f} {took > 0}')\n"
        "        total, start = 0.0, time.time()"
    ),
    "each step's time is noted": (
        f"{HEAD}for loss in losses:\n    total += loss.item()\n    result.append(time.time() - start > 0)\n"
        "    start = time.time()\nresult = total, result"
    ),
    "a function notes it": (
        f"{HEAD}def lap():\n    return time.time() - start > 0\n"
        "for loss in losses:\n    total += loss.item()\n    result.append(lap())\nresult = total, result"
    ),
    "a clock is read between the number and where it is written": (
        f"{HEAD}for step, loss in enumerate(losses):\n    value = loss.item()\n    if step % 6 == 5:\n"
        "        took = time.time() - start\n        result.append(f'{value:.3f} {took > 0}')\n"
        "result = result, 1"
    ),
}


@pytest.mark.parametrize("body", FIXED)
def test_it_is_rewritten(programs: dict[str, Rewritten], body: str) -> None:
    """It waits less, in front of the clock, and gives the same result."""
    program = programs[body]
    assert program.text == FIXED[body]
    assert program.waits[1] < program.waits[0]
    assert program.results[0] == program.results[1]


@pytest.mark.parametrize("name", KEPT)
def test_it_stays(programs: dict[str, Rewritten], name: str) -> None:
    """Not a byte changes, and the reason names the clock."""
    assert programs[name].text == KEPT[name]
    assert any("clock" in why for why in programs[name].left)
