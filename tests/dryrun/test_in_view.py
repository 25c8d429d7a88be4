"""`syncscan dryrun` and `fix` leave the user's files as they were; their reports land where the user wants them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from syncscan.scratch.scratch_view import KERNEL, PYTHON, VARIABLE, _kernels_refusal

pytest.importorskip("torch")

PROGRAM = """\
import os, shutil, torch
net = torch.nn.Linear(2, 2).cuda()
optimizer = torch.optim.SGD(net.parameters())
if os.path.exists("last.pt"):
    print("resumed from", torch.load("last.pt")["step"])
shutil.rmtree("results", ignore_errors=True)
os.makedirs("results")
for step in range(5):
    net(torch.ones(1, 2, device="cuda")).sum().backward()
    with open("train.log", "a") as log:
        log.write(f"{step}\\n")
    torch.save({"step": step, "net": net.state_dict()}, "last.pt")
    os.replace("last.pt", "results/best.pt")
    torch.save({"step": step}, "last.pt")
    optimizer.step()
"""


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "syncscan", *words]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(params=[KERNEL, pytest.param(PYTHON, marks=pytest.mark.slow)])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program's folder after an earlier run; temporary files go to another one."""
    import torch

    if request.param == KERNEL and _kernels_refusal():
        pytest.skip(f"the kernel gives no view here: {_kernels_refusal()}")
    monkeypatch.setenv(VARIABLE, request.param)
    place = tmp_path / "program"
    (place / "results").mkdir(parents=True)
    (place / "train.py").write_text(PROGRAM)
    (place / "train.log").write_text("earlier\n")
    (place / "results" / "curve.csv").write_text("1,2\n")
    torch.save({"step": 70}, place / "last.pt")
    monkeypatch.chdir(place)
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    return place


@pytest.mark.usefixtures("warm")
def test_a_dry_run_changes_no_file(folder: Path) -> None:
    """The program resumes from the user's checkpoint and overwrites it: in a copy, which is gone afterwards."""
    before = contents(folder)
    ran = subprocess.run(command("dryrun", "train.py"), capture_output=True, text=True)
    assert "resumed from 70" in ran.stderr
    assert "train.py" in ran.stdout
    assert contents(folder) == before
    assert not list((folder.parent / "tmp").glob("syncscan-*"))


@pytest.mark.usefixtures("warm")
def test_a_report_lands_in_the_users_folder(folder: Path) -> None:
    """A file that the command itself writes isn't part of the view."""
    subprocess.run(command("dryrun", "-o", "report.json", "--format", "json", "train.py"), check=True)
    assert (folder / "report.json").stat().st_size > 0


@pytest.mark.slow
@pytest.mark.usefixtures("warm")
def test_fix_changes_no_file(folder: Path) -> None:
    """All runs of the program, with and without changes, begin from the user's files."""
    before = contents(folder)
    subprocess.run(command("fix", "train.py"), capture_output=True, check=True)
    assert contents(folder) == before
    assert not list((folder.parent / "tmp").glob("syncscan-*"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_stopped_command_leaves_nothing(folder: Path, name: str) -> None:
    """A program that is stopped while it writes has changed no file, and no scratch folder stays."""
    (folder / "train.py").write_text(
        "open('last.pt', 'w').write('half')\nimport time\nprint('now', flush=True)\ntime.sleep(60)"
    )
    before = contents(folder)
    with subprocess.Popen(
        command("dryrun", "train.py"), stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as ran:
        assert ran.stderr is not None
        while "now" not in ran.stderr.readline():
            pass
        os.killpg(ran.pid, getattr(signal, name))
        ran.stderr.read()
    assert contents(folder) == before
    assert not list((folder.parent / "tmp").glob("syncscan-*"))


@pytest.mark.usefixtures("warm")
def test_a_killed_program_is_reported(folder: Path) -> None:
    """A program that a signal ends has a sentence and an exit code."""
    (folder / "train.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    ran = subprocess.run(command("dryrun", "train.py"), capture_output=True, text=True)
    assert ran.returncode == 1
    assert "The program was ended by SIGSEGV." in ran.stderr
