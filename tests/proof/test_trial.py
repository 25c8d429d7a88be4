"""Real programs in real processes: their steps are found, timed and compared as those of a capture."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from syncscan.errors import ProgramFailed, UsageError
from syncscan.proof.compared_program import program
from syncscan.proof.outcome import Side
from syncscan.proof.trial import TooFewSteps, Trials
from syncscan.scratch import kind_here

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("warm")

SCRIPT = """
import sys, torch
assert __name__ == "__main__" and sys.argv[1:] == ["--lr", "0.5"] and sys.path[0] == __file__.rpartition("/")[0]
weight = torch.rand(3, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=float(sys.argv[2]))
try:
    while True:
        optimizer.zero_grad()
        (weight * torch.rand(3)).sum().backward()
        optimizer.step()
finally:
    open("ended", "w").close()
"""
FUNCTIONS = """
import random, torch
def before():
    weight, seen = torch.rand(1), []
    def step():
        seen.append(1)
        return weight + len(seen)
    return step
def failing():
    raise ValueError(random.random() < 2 and "mine")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    (tmp_path / "syncscan.py").write_text("raise ImportError('this is not the one')")
    return tmp_path


@pytest.fixture
def trials(folder: Path) -> Iterator[Trials]:
    programs = {Side.BEFORE: program("train.py", ["--lr", "0.5"]), Side.AFTER: program("functions.py:before")}
    with Trials(programs, 60.0, in_place=True) as built:
        yield built


def test_steps_are_timed_and_compared(trials: Trials, folder: Path) -> None:
    """A script is timed, and a function that makes its step is compared by its results.

    A script is unwound when it isn't needed any more, so that what it does at its end is done.
    """
    timed, seeded = trials.open(Side.BEFORE), trials.open(Side.AFTER, seeded=3)
    fingerprint, device = seeded.fingerprint()
    assert device.startswith("CPU")
    (weight, *_), *_ = fingerprint.losses[0].numbers
    assert [step.numbers[0][0] - weight for step in fingerprint.losses] == pytest.approx([0, 1, 2], abs=1e-6)
    assert timed.ready() == 2
    turn = timed.turn(5)
    assert turn.clock == "host"
    assert 0 < turn.mean < 1e6
    timed.close()
    assert (folder / "ended").exists()


def test_compiled_code_is_stored_for_the_next_process(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the comparison is over: a process that compiles anew for each pair would take all the time there is."""
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(folder))  # where a user's own cache would be
    (folder / "compiles.py").write_text(
        "import os, pathlib, torch\n"
        "stored = pathlib.Path(os.environ['TORCHINDUCTOR_CACHE_DIR'], 'kernel')\n"
        "def before():\n"
        "    seen = torch.ones(1) * stored.exists()\n"
        "    stored.touch()\n"
        "    return lambda: seen\n"
    )
    with Trials({Side.BEFORE: program("compiles.py:before")}, 60.0) as trials:
        for stored in (0.0, 1.0):
            trial = trials.open(Side.BEFORE, seeded=1)
            assert trial.fingerprint()[0].losses[0].numbers[0][0] == stored
            trial.close()


def test_a_users_own_cache_of_compiled_code_stays_in_use(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that is already there needs no compiler."""
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    (folder / f"torchinductor_{getpass.getuser()}").mkdir()
    (folder / "compiles.py").write_text(
        "import os, torch\n"
        "def before():\n"
        "    named = torch.ones(1) * ('TORCHINDUCTOR_CACHE_DIR' in os.environ)\n"
        "    return lambda: named\n"
    )
    with Trials({Side.BEFORE: program("compiles.py:before")}, 60.0) as trials:
        assert trials.open(Side.BEFORE, seeded=1).fingerprint()[0].losses[0].numbers[0][0] == 0.0


def test_a_program_writes_into_a_copy_of_the_users_files(folder: Path) -> None:
    """Both sides begin from the same state, and what they write is gone afterwards; trackers are off in them."""
    (folder / "functions.py").write_text(
        "import os\n"
        "def step():\n"
        "    with open('count', 'a') as file:\n        file.write('1')\n"
        "    assert os.environ['WANDB_MODE'] == 'disabled' and 'SYNCSCAN_DRY_RUN' not in os.environ\n"
        "    return os.stat('count').st_size\n"
    )
    with Trials({Side.BEFORE: program("functions.py:step")}, 60.0) as trials:
        for _ in range(2):
            fingerprint, _ = trials.open(Side.BEFORE, seeded=1).fingerprint()
            assert fingerprint.losses[0].numbers == ((1.0,),)
    assert not (folder / "count").exists()


@pytest.mark.parametrize("kind", ["kernel", "python"])
def test_a_patched_program_has_its_text_in_the_copy_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """At its own path, where it finds its modules and its data."""
    if kind == "kernel" and kind_here() != kind:
        pytest.skip("the kernel gives no view here")
    monkeypatch.setenv("SYNCSCAN_SCRATCH", kind)
    (folder / "scale.py").write_text("FACTOR = 1")
    (folder / "patch").write_text(
        "import scale\nfrom pathlib import Path\nassert Path(__file__).name == 'one.py'\n"
        "def step():\n    return scale.FACTOR * float(Path(__file__).with_name('data').read_text())"
    )
    (folder / "one.py").write_text("def step():\n    return 1.0")
    (folder / "data").write_text("7")
    patched = replace(program("one.py:step"), patched=((folder / "one.py", folder / "patch"),))
    with Trials({Side.BEFORE: program("one.py:step"), Side.AFTER: patched}, 120.0) as trials:
        losses = [trials.open(side, seeded=1).fingerprint()[0].losses[0].numbers for side in Side]
    assert losses == [((1.0,),), ((7.0,),)]
    assert (folder / "one.py").read_text() == "def step():\n    return 1.0"


def failed(code: str, spec: str = "bad.py") -> Exception:
    """Return the error with which a program of this code ends."""
    Path("bad.py").write_text(code)
    with Trials({Side.BEFORE: program(spec)}, 30.0) as trials, pytest.raises(Exception) as caught:  # noqa: PT011
        trials.open(Side.BEFORE).ready()
    return caught.value


def test_a_failing_program_is_one_sentence_and_the_end_of_its_output(folder: Path) -> None:
    """Its output is shown then and only then, without syncscan's frames."""
    error = failed("print('so far')\nraise ValueError('mine')")
    assert isinstance(error, ProgramFailed)
    assert error.message == "bad.py failed: it ended with exit code 1."
    assert "so far" in error.hint
    assert "ValueError: mine" in error.hint
    assert "syncscan/" not in error.hint


def test_a_program_that_dies_of_a_signal_is_reported(folder: Path) -> None:
    """As of a segmentation fault."""
    error = failed("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)")
    assert str(error).startswith("bad.py failed: it was ended by SIGSEGV.")


def test_a_program_without_steps_is_reported_how_to_have_them(folder: Path) -> None:
    """It isn't a program with too few."""
    error = failed("print('nothing to do')")
    assert not isinstance(error, TooFewSteps)
    assert "bad.py ended without a step." in str(error)
    assert "file.py:before" in str(error)


def test_a_function_that_is_not_there_is_a_wrong_call(folder: Path) -> None:
    """The file's own functions are named."""
    error = failed("def step(): pass", "bad.py:stop")
    assert isinstance(error, UsageError)
    assert "It has: step." in error.hint


def test_a_program_that_never_comes_to_its_steps_is_ended(folder: Path) -> None:
    """At the limit, without waiting for it: its own end would come after days."""
    Path("bad.py").write_text("import time\ntime.sleep(10**6)")
    with Trials({Side.BEFORE: program("bad.py")}, 0.1) as trials, pytest.raises(TimeoutError):
        trials.open(Side.BEFORE).ready()
