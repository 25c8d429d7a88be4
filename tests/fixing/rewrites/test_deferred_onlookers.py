"""Numbers that somebody else may look at before the loop is over stay numbers."""

from __future__ import annotations

import pytest

from syncscan.fixing.rewrites.rarer_reads import deferred_read
from tests.each import each
from tests.fixing.example import Rewritten

REWRITE = deferred_read
INTERRUPTED = "its value may be used after an exception that is handled around the loop"


def loop(run: str, more: str = "") -> str:
    return f"import contextlib, sys\n{more}total = 0.0\n{run}\nresult = total"


LOOP = "    for loss in losses:\n        total += loss.item()"
TIMER = """\
class Timer:
    def __enter__(self):
        return self
    def __exit__(self, *error):
        {leave}
"""
REASONS = {
    loop(f"try:\n{LOOP}\nexcept KeyboardInterrupt:\n    pass"): INTERRUPTED,
    loop(f"with contextlib.suppress(KeyboardInterrupt):\n{LOOP}"): INTERRUPTED,
    loop(f"with Timer():\n{LOOP}", TIMER.format(leave="return True")): INTERRUPTED,
    loop(f"with Timer():\n{LOOP}", TIMER.format(leave="print(error)")): INTERRUPTED,
    loop(f"try:\n{LOOP}\nfinally:\n    print(end=str(total)[:0])"): "its value is used by an exception handler",
    (
        "class Trainer:\n    total = 0.0\ntrainer = Trainer()\n"
        "for loss in losses:\n    trainer.total += loss.item()\nresult = trainer.total"
    ): "its value is stored in an attribute, which other code may read",
}
KEPT = {program: program for program in REASONS}
FIXED = {
    program: program.replace("loss.item()", "loss.double()").replace(*behind)
    for program, behind in {
        loop(f"try:\n{LOOP}\nexcept KeyboardInterrupt:\n    sys.exit(1)\n    raise"): (
            "double()\n",
            "double()\n    total = float(total)\n",
        ),
    }.items()
}


@each("program", REASONS)
def test_it_stays(programs: dict[str, Rewritten], program: str) -> None:
    """Not a byte changes, and the author learns why."""
    left = programs[program]
    assert left.text == program.rstrip("\n")
    assert any(REASONS[program] in reason for reason in left.left)


@pytest.mark.parametrize("program", FIXED)
def test_it_is_deferred_if_nobody_looks(programs: dict[str, Rewritten], program: str) -> None:
    """A handler that ends the program and functions of libraries see no number."""
    assert programs[program].text == FIXED[program].rstrip("\n")
    assert programs[program].results[0] == programs[program].results[1]
