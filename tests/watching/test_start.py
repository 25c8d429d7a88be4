"""A script, and each process of a command that steps, is watched as it is; an alarm leads to a capture."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from syncscan.watching.watch_file import files_of, read

torch = pytest.importorskip("torch")

TRAIN = """
import sys, time, torch
parameter = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([parameter], lr=0.1)
for _ in range(int(sys.argv[1])):
    parameter.sum().backward()
    optimizer.step()
    time.sleep(0.01)
sys.exit(3)
"""


def watched(folder: Path, *words: str, code: int = 3) -> str:
    (folder / "train.py").write_text(TRAIN)
    command = [sys.executable, "-m", "syncscan", "watch", "--interval", "0.5", "--out", "w", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stderr
    return done.stderr


@pytest.mark.usefixtures("warm")
def test_a_script_runs_to_its_end_and_is_watched(tmp_path: Path) -> None:
    """Its exit code is the command's."""
    printed = watched(tmp_path, "train.py", "80")
    (file,) = files_of(str(tmp_path / "w"))
    record = read(file)
    assert record.begin is not None
    assert (record.begin.program, sum(w.step.count for w in record.windows if w.step)) == ("train", 79)
    assert f"syncscan watch w/{file.name}" in printed


@pytest.mark.slow
def test_each_rank_of_a_launcher_is_watched(tmp_path: Path) -> None:
    """The launcher itself, which makes no step, has no file."""
    torchrun = Path(sys.executable).with_name("torchrun")
    if not torchrun.exists():
        pytest.skip("no torchrun here")
    os.environ["PATH"] = f"{torchrun.parent}{os.pathsep}{os.environ['PATH']}"
    watched(tmp_path, "torchrun", "--nproc-per-node", "2", "train.py", "80", code=1)
    ranks = [begin.rank for file in files_of(str(tmp_path / "w")) if (begin := read(file).begin)]
    assert sorted(ranks) == [0, 1]


@pytest.mark.usefixtures("warm")
def test_a_script_that_steps_nothing_is_reported_to(tmp_path: Path) -> None:
    assert "No step ended" in watched(tmp_path, "train.py", "0")


ALARMED = """
import json, threading, time, torch, syncscan
from syncscan.watching.watch_file import Alarm

parameter = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([parameter], lr=0.1)
with syncscan.watch("w", name="train", interval=0.5, capture_on_alarm=True) as watch:
    for number in range(3000):
        parameter.sum().backward()
        optimizer.step()
        time.sleep(0.005)
        if number == 20:
            watch._wish = "the loss waits"  # as an alarm does
        if any("captured" in line for line in open(watch.path)):
            break
threads = sorted(t.name for t in threading.enumerate() if "syncscan" in t.name)
import sys
hooks, until = sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks, time.monotonic() + 60
while hooks and time.monotonic() < until:
    time.sleep(0.01)
print(json.dumps([threads, len(hooks)]))
"""


@pytest.mark.usefixtures("warm")
def test_an_alarm_captures_some_steps_and_the_job_goes_on(tmp_path: Path) -> None:
    """The watch pauses meanwhile, and notes the trace; the hooks of both are off afterwards."""
    (tmp_path / "job.py").write_text(ALARMED)
    done = subprocess.run([sys.executable, "job.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (file,) = files_of(str(tmp_path / "w"))
    (captured,) = read(file).captures
    assert captured.failed is None
    assert captured.why == "the loss waits"
    assert [Path(path).exists() for path in captured.paths] == [True]
    assert json.loads(done.stdout.splitlines()[-1])[1] == 0
