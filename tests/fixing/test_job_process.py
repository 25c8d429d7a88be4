"""A program that is stopped after some steps ends its loops, and what stands behind them runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncscan.fixing.messages import ProgramJob, RunResult
from syncscan.fixing.runs import Runs

HEAD = """\
import torch
w = torch.ones(3, device="cuda", requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
def step():
    opt.zero_grad()
    w.sum().backward()
    opt.step()
"""
LOOPS = {
    "a loop": "n = 0\nfor k in range(10**9):\n    step()\n    n += 1\nprint(n)\n",
    "a loop without an end": "n = 0\nwhile True:\n    step()\n    n += 1\nprint(n)\n",
    "epochs of a function": (
        "n = 0\ndef epoch():\n    count = 0\n    for k in range(10**9):\n        step()\n        count += 1\n"
        "    return count\nfor e in range(10**9):\n    n += epoch()\nprint(n)\n"
    ),
    "a generator that trains": (
        "def train():\n    for k in range(10**9):\n        step()\n        yield 1\nn = 0\nfor one in train():\n"
        "    n += one\nprint(n)\n"
    ),
    "a loop that goes on in each turn": (
        "n = 0\nfor k in range(10**9):\n    n += 1\n    step()\n    continue\nprint(n)\n"
    ),
}


def run(runs: Runs, folder: Path, source: str, **more: object) -> RunResult:
    path = folder / "train.py"
    path.write_text(HEAD + source)
    return runs.run(ProgramJob(target=str(path), arguments=[], steps=5, **more))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", LOOPS)
def test_the_loops_end_with_their_turn(runs: Runs, tmp_path: Path, name: str) -> None:
    """The sixth step ends them, so that their last turn is whole; the program comes to its end."""
    outcome = run(runs, tmp_path, LOOPS[name])
    assert (outcome.code, outcome.failure) == (0, "")
    assert outcome.printed == "6\n"


def test_a_loop_that_begins_afterwards_is_short(runs: Runs, tmp_path: Path) -> None:
    """It makes twice as many turns as there are steps."""
    source = "for k in range(10**9):\n    step()\nn = 0\nfor k in range(10**9):\n    n += 1\nprint(n)\n"
    assert run(runs, tmp_path, source).printed == "10\n"


def test_without_winding_down_the_program_ends_at_once(runs: Runs, tmp_path: Path) -> None:
    """Code behind the loop doesn't run."""
    outcome = run(runs, tmp_path, LOOPS["a loop"], ends_loops=False)
    assert (outcome.code, outcome.printed) == (0, "")


def test_a_file_that_the_program_imports_ends_its_loops_too(runs: Runs, tmp_path: Path) -> None:
    """Its loop holds the step."""
    (tmp_path / "loop.py").write_text(
        "def train(step):\n    n = 0\n    for k in range(10**9):\n        step()\n        n += 1\n    return n\n"
    )
    assert run(runs, tmp_path, "import loop\nprint(loop.train(step))\n").printed == "6\n"
