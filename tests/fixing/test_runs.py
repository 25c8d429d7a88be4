"""A program under `syncscan fix` runs in a view of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncscan.fixing.messages import ProgramJob
from syncscan.fixing.runs import Runs

PROGRAM = """\
import os, torch
resumed = os.path.exists("last.pt")
torch.save({"weights": torch.ones(4, device="cuda")}, "last.pt")
print(resumed, torch.load("last.pt")["weights"].sum().item(), os.environ["SYNCSCAN_DRY_RUN"])
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "train.py"
    script.write_text(PROGRAM)
    return script


def test_two_runs_begin_from_the_same_state_and_leave_nothing(runs: Runs, script: Path) -> None:
    """A program that saves a checkpoint reads it back, its next run doesn't find it, and neither does the user."""
    printed = [runs.run(ProgramJob(str(script), [])).printed for _ in range(2)]
    assert printed == ["False 4.0 1\n"] * 2
    assert [path.name for path in script.parent.iterdir()] == ["train.py"]


def test_what_a_run_wrote_is_there_to_compare(runs: Runs, script: Path) -> None:
    """The files of a kept run stay while others run."""
    written = runs.run(ProgramJob(str(script), []), keep=True).written
    runs.run(ProgramJob(str(script), []))
    left = written[str(script.parent.resolve() / "last.pt")]
    assert left is not None
    assert Path(left).stat().st_size > 0


@pytest.mark.usefixtures("warm")
def test_a_run_over_its_limit_leaves_nothing(script: Path) -> None:
    """A program that is killed while it writes has written nothing of the user's."""
    script.write_text("f = open('log', 'w')\nf.write('half')\nf.flush()\nimport time\ntime.sleep(100)\n")
    with Runs(limit_s=1.0) as runs:
        outcome = runs.run(ProgramJob(str(script), []))
        folder = Path(runs._folder.name)
    assert outcome.failure == "it didn't end within 1 s"
    assert [path.name for path in script.parent.iterdir()] == ["train.py"]
    assert not folder.exists()
