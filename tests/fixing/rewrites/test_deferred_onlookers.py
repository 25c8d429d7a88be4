"""Numbers that somebody else may look at before the loop is over stay numbers."""

from __future__ import annotations

import pytest

from syncscan.fixing.rewrites import deferred
from tests.each import each
from tests.fixing.example import Rewritten

REWRITE = deferred
TRAINER = """\
import contextlib, json, operator, sys
class Trainer:
    def __init__(self, *hooks):
        self.total, self.hooks = 0.0, hooks
    def train(self):
        for loss in losses:
            self.total += loss.item()
            {step}
    def save(self):
        return json.dumps(self.total)
{begin}
trainer = Trainer()
{run}
result = trainer.total
"""
INTERRUPTED = "its value may be used after an exception that is handled around the loop"


def trainer(run: str = "trainer.train()", step: str = "pass", begin: str = "") -> str:
    return TRAINER.format(run=run, step=step, begin=begin)


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
    trainer("try:\n    trainer.train()\nexcept KeyboardInterrupt:\n    trainer.save()\n    raise"): INTERRUPTED,
    trainer("try:\n    trainer.train()\nexcept KeyboardInterrupt:\n    pass"): INTERRUPTED,
    trainer("try:\n    trainer.train()\nfinally:\n    trainer.save()"): INTERRUPTED,
    trainer("with contextlib.suppress(KeyboardInterrupt):\n    trainer.train()"): INTERRUPTED,
    trainer(
        "try:\n    run(trainer)\nexcept KeyboardInterrupt:\n    trainer.save()\n    raise",
        begin="def run(one):\n    one.train()",
    ): INTERRUPTED,
    trainer(step="operator.truth(self)"): "its value may be read by truth()",
    trainer(step="for hook in self.hooks: hook(self)"): "its value may be read by hook()",
    trainer(step="for hook in self.hooks: hook()"): "its value may be read by hook()",
    trainer(step="if self.total is None: json.dumps(vars(self))"): "its value may be read by vars()",
    loop(f"try:\n{LOOP}\nexcept KeyboardInterrupt:\n    pass"): INTERRUPTED,
    loop(f"with contextlib.suppress(KeyboardInterrupt):\n{LOOP}"): INTERRUPTED,
    loop(f"with Timer():\n{LOOP}", TIMER.format(leave="return True")): INTERRUPTED,
    loop(f"with Timer():\n{LOOP}", TIMER.format(leave="print(error)")): INTERRUPTED,
    (
        "def train(history):\n    for loss in losses:\n        history.append(loss.item())\n"
        "values = []\ntry:\n    train(values)\nexcept KeyboardInterrupt:\n    print(values)\n    raise\nresult = values"
    ): INTERRUPTED,
}
KEPT = {program: program for program in REASONS}
FIXED = {
    program: program.replace("loss.item()", "loss.detach().double()").replace(*behind)
    for program, behind in {
        trainer("try:\n    trainer.train()\nexcept KeyboardInterrupt:\n    print('stopped')\n    raise"): (
            "            pass\n",
            "            pass\n        self.total = self.total.item() if torch.is_tensor(self.total) else self.total\n",
        ),
        trainer(step="print(len(self.hooks), file=sys.stderr)"): (
            "sys.stderr)\n",
            "sys.stderr)\n        self.total = self.total.item() if torch.is_tensor(self.total) else self.total\n",
        ),
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
