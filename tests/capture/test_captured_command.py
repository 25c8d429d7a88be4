"""Processes that a captured command starts capture themselves, by rank, and end together."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from syncscan.capture import captured_command
from syncscan.capture.plan import Demand, Plan
from syncscan.capture.sync_lines import trimmed

pytest.importorskip("torch")

SPAWN = """
import os, sys, torch, torch.distributed as dist, torch.multiprocessing as mp

def work(rank, world, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(100_000):
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    print("not ended")

if __name__ == "__main__":
    mp.spawn(work, args=(2, sys.argv[1]), nprocs=2)
    print("the parent ends")
"""


def profiled(folder: Path, *words: str, python: str = "") -> subprocess.CompletedProcess[str]:
    options = ["--sample", "0", "--calibrate", "2", "--warmup", "1", "--active", "1", "--out", "traces"]
    root = str(Path(__file__).parents[2])
    return subprocess.run(
        [python or sys.executable, "-m", "syncscan", "profile", *options, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.slow
def test_ranks_that_a_script_spawns_are_captured_and_end_at_one_step(tmp_path: Path, warm_python: str) -> None:
    """One that ended before the other would leave it waiting for ever."""
    (tmp_path / "spawn.py").write_text(SPAWN)
    done = profiled(tmp_path, "spawn.py", str(tmp_path / "store"), python=warm_python)
    assert done.returncode == 0, done.stderr
    assert "the parent ends" in done.stdout
    assert "not ended" not in done.stdout
    names = sorted(path.name.split(".")[0] for path in (tmp_path / "traces").iterdir())
    assert names == ["spawn_rank0", "spawn_rank1"]
    assert "stopped its 2 processes" in done.stderr
    assert "syncscan fleet traces joins the captures of the 2 processes" in done.stderr


FORK = """
import sys, torch, torch.distributed as dist, torch.multiprocessing as mp
from torch.utils.data import DataLoader

def work(rank, world, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in DataLoader(torch.ones(200_000, 4), batch_size=2, num_workers=1, multiprocessing_context="fork"):
        model(x).sum().backward()
        optimizer.step()
    print("not ended")

processes = [mp.get_context("fork").Process(target=work, args=(rank, 2, sys.argv[1])) for rank in range(2)]
for process in processes:
    process.start()
for process in processes:
    process.join()
print("the parent ends", [process.exitcode for process in processes])
"""


def test_ranks_that_a_script_forks_are_captured_and_end_at_one_step(tmp_path: Path, warm_python: str) -> None:
    """Their loaders' workers, which are forked too, are left alone."""
    (tmp_path / "fork.py").write_text(FORK)
    done = profiled(tmp_path, "fork.py", str(tmp_path / "store"), python=warm_python)
    assert done.returncode == 0, done.stderr
    assert "the parent ends [0, 0]" in done.stdout
    assert "not ended" not in done.stdout
    names = sorted(path.name.split(".")[0] for path in (tmp_path / "traces").iterdir())
    assert names == ["fork_rank0", "fork_rank1"]
    assert "stopped its 2 processes" in done.stderr


def test_a_child_that_comes_to_the_script_s_end_ends_as_under_python(tmp_path: Path, warm_python: str) -> None:
    """With its exit handlers; the report is the parent's, once."""
    (tmp_path / "halves.py").write_text(
        "import atexit, os, sys, torch\natexit.register(lambda: print('bye', os.getpid() == first))\n"
        "first = os.getpid()\nif pid := os.fork():\n    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
        "else:\n    m = torch.nn.Linear(4, 4)\n    o = torch.optim.SGD(m.parameters(), lr=0.1)\n"
        "    for _ in range(100):\n        m(torch.ones(2, 4)).sum().backward()\n        o.step()\n    sys.exit(7)\n"
    )
    done = profiled(tmp_path, "--keep-running", "halves.py", python=warm_python)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    assert [line for line in printed if line in ("7", "bye True", "bye False")] == ["bye False", "7", "bye True"]
    assert len(list((tmp_path / "traces").iterdir())) == 1


@pytest.mark.usefixtures("warm")
def test_a_shell_script_s_program_is_captured(tmp_path: Path) -> None:
    """Whatever starts it, and with the exit code of what was ended early."""
    (tmp_path / "train.py").write_text(
        "import torch\nm = torch.nn.Linear(4, 4)\no = torch.optim.SGD(m.parameters(), lr=0.1)\n"
        "for _ in range(100_000):\n    m(torch.ones(2, 4)).sum().backward()\n    o.step()\n"
    )
    script = tmp_path / "run.sh"
    script.write_text(f"#!/bin/sh\n{sys.executable} train.py\necho after $?\n")
    script.chmod(0o755)
    done = profiled(tmp_path, "./run.sh")
    assert (done.returncode, "after 0" in done.stdout) == (0, True), done.stderr
    assert len(list((tmp_path / "traces").iterdir())) == 1


def test_a_command_that_steps_nothing_has_its_own_exit_code(tmp_path: Path) -> None:
    """And is told why nothing was captured only where it did well."""
    script = tmp_path / "run.sh"
    script.write_text("#!/bin/sh\nexit 3\n")
    script.chmod(0o755)
    assert profiled(tmp_path, "./run.sh").returncode == 3


def test_the_program_doesn_t_see_what_its_children_are_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`os.environ` stays, the environment that a child inherits doesn't; all is put back."""
    wanted = captured_command.WantedCaptures(str(tmp_path), str(tmp_path), "", Plan(), Demand(), False)
    text = "import os; print('SYNCSCAN_CHILD' in os.environ)"

    def child() -> str:
        return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True).stdout.strip()

    with captured_command.inheriting(wanted.variables()):
        assert "SYNCSCAN_CHILD" not in os.environ
        assert child() == "True"
    assert child() == "False"


def test_a_child_s_own_startup_runs_too(tmp_path: Path) -> None:
    """An environment may have a `sitecustomize` of its own."""
    (tmp_path / "sitecustomize.py").write_text("print('own')")
    wanted = captured_command.WantedCaptures(str(tmp_path), str(tmp_path), "", Plan(), Demand(), False)
    given = wanted.variables()
    path = os.pathsep.join([given["PYTHONPATH"], str(tmp_path)])
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; print([p for p in sys.path if p.endswith('startup')], 'torch' in sys.modules)",
        ],
        env={**os.environ, **given, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split("\n")[:2] == ["own", "[] False"], done.stderr


TRAIN = """
import sys, torch
m = torch.nn.Linear(4, 4)
o = torch.optim.SGD(m.parameters(), lr=0.1)
for _ in range(100_000):
    m(torch.ones(2, 4)).sum().backward()
    o.step()
"""


@pytest.mark.slow
def test_a_program_started_twice_writes_two_traces_and_both_end(tmp_path: Path) -> None:
    """At the same time, by one shell script; neither waits for the other or takes its name."""
    (tmp_path / "train.py").write_text(TRAIN)
    script = tmp_path / "run.sh"
    script.write_text(f"#!/bin/sh\n{sys.executable} train.py &\n{sys.executable} train.py\nwait\n")
    script.chmod(0o755)
    done = profiled(tmp_path, "./run.sh")
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "traces").iterdir())) == 2
    assert "syncscan fleet" not in done.stderr


@pytest.mark.usefixtures("warm")
def test_a_launcher_s_failure_is_its_exit_code(tmp_path: Path) -> None:
    """Also where a rank fails after others have stepped; what was seen is said no more than that."""
    (tmp_path / "train.py").write_text("import torch\nraise SystemExit(3)\n")
    script = tmp_path / "run.sh"
    script.write_text(f"#!/bin/sh\n{sys.executable} train.py || exit 7\n")
    script.chmod(0o755)
    done = profiled(tmp_path, "./run.sh")
    assert (done.returncode, done.stdout) == (7, "")
    assert not list((tmp_path / "traces").iterdir())


@pytest.mark.slow
def test_a_launcher_s_ranks_are_captured(tmp_path: Path) -> None:
    """By torchrun, as typed; a second run behind it, with the same rendezvous, heeds nothing of the first."""
    (tmp_path / "train.py").write_text(
        "import torch, torch.distributed as dist\ndist.init_process_group('gloo')\n"
        "m = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))\n" + TRAIN.split("4, 4)\n")[1]
    )
    script = tmp_path / "run.sh"
    run = f"{sys.executable} -m torch.distributed.run --nproc-per-node 2 --master-port {free_port()} train.py"
    script.write_text(f"#!/bin/sh\n{run} && {run}\n")
    script.chmod(0o755)
    done = profiled(tmp_path, "./run.sh")
    assert done.returncode == 0, done.stderr
    names = sorted(path.name.split(".")[0] for path in (tmp_path / "traces").iterdir())
    assert names == ["train_rank0", "train_rank0", "train_rank1", "train_rank1"]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_what_is_no_python_or_has_no_torch_is_untouched(tmp_path: Path) -> None:
    """And nothing is left where the processes said what they did."""
    (tmp_path / "plain.py").write_text("import sys; print(sorted(m for m in sys.modules if m.startswith('syncscan')))")
    script = tmp_path / "run.sh"
    script.write_text(f"#!/bin/sh\necho shell\n{sys.executable} plain.py\n")
    script.chmod(0o755)
    done = profiled(tmp_path, "./run.sh")
    assert done.stdout.split("\n")[0] == "shell"
    assert "captured_process" not in done.stdout


def test_what_processes_say_comes_by_rank(tmp_path: Path) -> None:
    """Incomplete messages are left out."""
    for rank in (1, 0):
        row = {
            "pid": 10 + rank,
            "rank": rank,
            "world": 2,
            "paths": [f"r{rank}.json"],
            "steps": 5,
            "marked_by": "SGD.step()",
        }
        row |= {"exit_code": 0, "complete": True, "failed": None, "stopped": True}
        (tmp_path / f"{rank}.json").write_text(json.dumps(row))
    (tmp_path / "2.json").write_text("{")
    assert [run.rank for run in captured_command.runs(tmp_path)] == [0, 1]


def test_the_script_of_a_package_s_entry_point_is_no_line_of_anybody_s(tmp_path: Path) -> None:
    """The program's outermost frame is the package's: never `yolo:8`."""
    script = tmp_path / "yolo"
    script.write_text("#!/env/bin/python\nimport sys\nfrom ultralytics.cfg import entrypoint\nsys.exit(entrypoint())\n")
    stack = [
        ("/env/lib/python3.12/site-packages/ultralytics/engine/trainer.py", 9, "train"),
        (str(script), 4, "<module>"),
    ]
    assert trimmed(stack) == stack[:1]
