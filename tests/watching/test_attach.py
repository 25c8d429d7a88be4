"""A process that was started without syncscan is captured or watched, and goes on as before."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from syncscan.cli import group
from syncscan.errors import ProgramFailed, UsageError
from syncscan.watching import code_injection
from syncscan.watching.attach import Answers, NotHeard, Order, answer, attached
from syncscan.watching.code_injection import process_of, run_line
from syncscan.watching.watch_file import read
from tests.until import until

torch = pytest.importorskip("torch")
reachable = pytest.mark.skipif(
    sys.platform != "linux" or (sys.version_info < (3, 14) and shutil.which("gdb") is None),
    reason="needs Linux, and gdb before Python 3.14",
)

TRAIN = """
import sys, threading, time, torch
parameter = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([parameter], lr=0.1)
def wait():
    time.sleep(0.01)
number = 0
while True:
    parameter.sum().backward()
    optimizer.step()
    wait()
    number += 1
    hooks = len(sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks)
    threads = sum("syncscan" in thread.name for thread in threading.enumerate())
    with open("state", "w") as file:
        file.write(f"{number} {hooks} {threads}")
"""
STUCK = "import ctypes\nopen('state', 'w').write('x')\nctypes.CDLL(None).sleep(120)\n"


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Start a program in a folder, and wait until it is at its work; it is killed at the end."""
    running = []

    def start(text: str) -> subprocess.Popen[bytes]:
        (tmp_path / "job.py").write_text(text)
        process = subprocess.Popen([sys.executable, "job.py"], cwd=tmp_path)
        running.append(process)
        until((tmp_path / "state").exists)
        return process

    yield start
    for process in running:
        process.kill()
        process.wait()


def state(folder: Path) -> list[int]:
    """Return the program's number of steps, of optimizer hooks and of syncscan's threads."""
    return until(lambda: words if len(words := [*map(int, (folder / "state").read_text().split())]) == 3 else [])


def settled(folder: Path) -> list[int]:
    """Return the state once it has no hook and no thread."""
    until(lambda: state(folder)[1:] == [0, 0])
    return state(folder)


def steps_on(folder: Path, steps: int = 1) -> None:
    """Wait until the program has made some more steps."""
    before = state(folder)[0]
    until(lambda: state(folder)[0] >= before + steps)


@pytest.mark.slow
@reachable
def test_a_running_program_is_captured_and_goes_on(
    tmp_path: Path, started: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    """The trace is written where it was asked; no hook and no thread is left, and it steps on."""
    process = started(TRAIN)
    order = Order("capture", str(tmp_path / "out"), steps=2, warmup=1)
    with attached(process_of(process.pid), order, heard_s=120) as answers:
        done = answers.until("done")
    assert [Path(path).exists() for path in done["done"]] == [True]
    assert done["marked_by"] == "SGD.step()"
    assert settled(tmp_path)[1:] == [0, 0]
    steps_on(tmp_path)
    assert state(tmp_path)[1:] == [0, 0]
    assert process.poll() is None


@pytest.mark.slow
@reachable
def test_a_watch_begins_and_ends_in_a_running_program(
    tmp_path: Path, started: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    """Its file has the steps in between."""
    process = process_of(started(TRAIN).pid)
    with attached(process, Order("watch", str(tmp_path / "out"), interval=0.5)) as answers:
        (path,) = answers.until("done")["done"]
    with (
        attached(process, Order("watch", str(tmp_path / "out"))) as answers,
        pytest.raises(
            ProgramFailed, match=r"^Process \d+: This process already has a watch\. Stop that watch first\.$"
        ),
    ):
        answers.until("done")
    steps_on(tmp_path, 5)
    with attached(process, Order("stop")) as answers:
        assert answers.until("done")["done"] == [path]
    watched = read(Path(path))
    assert watched.end is not None
    assert watched.end.total_steps > 3
    assert settled(tmp_path)[1:] == [0, 0]
    with attached(process, Order("stop")) as answers, pytest.raises(ProgramFailed, match="has no watch"):
        answers.until("done")


@pytest.mark.slow
@reachable
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
def test_a_watch_that_can_not_write_ends_at_once(
    tmp_path: Path, started: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    """As on a full disk; the program goes on without it."""
    process = started(TRAIN)
    (tmp_path / f"job.{process.pid}.watch.jsonl").symlink_to("/dev/full")
    result = CliRunner().invoke(group, ["attach", str(process.pid), "--watch", "--out", str(tmp_path)])
    assert f"the watch can't write to {tmp_path}" in str(result.exception)
    assert settled(tmp_path)[1:] == [0, 0]


@pytest.mark.slow
@reachable
def test_a_process_that_hangs_in_c_is_left_as_it_is(
    tmp_path: Path, started: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    """The order is taken back."""
    process = started(STUCK)
    with (
        pytest.raises(NotHeard, match="has been in a C call"),
        attached(process_of(process.pid), Order("stop"), heard_s=2),
    ):
        pass
    assert process.poll() is None


@pytest.mark.slow
@reachable
def test_a_stopped_process_is_refused_and_goes_on_later(
    tmp_path: Path, started: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    """By SIGSTOP: a debugger's call in it would never return."""
    process = started(
        TRAIN.replace("while True:", "threading.Thread(target=time.sleep, args=(99,)).start()\nwhile True:")
    )
    process.send_signal(signal.SIGSTOP)
    until(lambda: "T (stopped)" in Path(f"/proc/{process.pid}/status").read_text())
    with pytest.raises(UsageError, match=f"is stopped, by SIGSTOP.*kill -CONT {process.pid}"):
        process_of(process.pid)
    process.send_signal(signal.SIGCONT)
    steps_on(tmp_path)
    assert process.poll() is None


SIGNALED = """
import os, signal, threading, time
signal.signal(signal.SIGUSR1, lambda number, frame: None)
def take():
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
    while True:
        time.sleep(0.01)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
for _ in range(3):
    threading.Thread(target=take, daemon=True).start()
if os.fork() == 0:
    job = os.getppid()
    while os.getppid() == job:
        os.kill(job, signal.SIGUSR1)
        time.sleep(0.0003)
    os._exit(0)
open("state", "w").write("x")
while True:
    time.sleep(0.01)
"""


@pytest.mark.slow
@reachable
def test_signals_that_other_threads_get_meanwhile_do_no_harm(
    tmp_path: Path, started: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    """Thousands a second, as a scheduler or a profiler sends them: the process answers, and lives on."""
    process = started(SIGNALED)
    for _ in range(3):
        with (
            attached(process_of(process.pid), Order("stop")) as answers,
            pytest.raises(ProgramFailed, match="has no watch"),
        ):
            answers.until("done")
    assert process.poll() is None


@pytest.mark.slow
@reachable
def test_an_order_that_was_taken_back_is_never_carried_out(
    tmp_path: Path, started: Callable[[str], subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process comes back from its call of C's later: it prints nothing, and no file of the order is left."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    process = started(
        "import ctypes, sys, time\nsys.stderr = open('errors', 'w', buffering=1)\nopen('state', 'w').write('x')\n"
        "ctypes.CDLL(None).sleep(8)\nfor _ in range(20):\n    time.sleep(0.01)\nopen('over', 'w').write('x')\n"
        "time.sleep(60)\n"
    )
    with pytest.raises(NotHeard), attached(process_of(process.pid), Order("stop"), heard_s=1):
        pass
    until((tmp_path / "over").exists)
    assert process.poll() is None
    assert (tmp_path / "errors").read_text() == ""
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.slow
@reachable
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root reaches another user's process")
def test_root_reaches_another_user_s_process(tmp_path: Path) -> None:
    """The answers' folder belongs to that user meanwhile."""
    (tmp_path / "job.py").write_text("import time\nprint('begun', flush=True)\nwhile True:\n    time.sleep(0.01)\n")
    for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)
    try:
        command = [sys.executable, str(tmp_path / "job.py")]
        process = subprocess.Popen(command, user=65534, cwd="/", stdout=subprocess.PIPE)
    except PermissionError:
        pytest.skip("that user can't run this Python")
    try:
        assert process.stdout
        if process.stdout.readline() != b"begun\n":
            pytest.skip("that user can't run this Python")
        with (
            attached(process_of(process.pid), Order("stop")) as answers,
            pytest.raises(ProgramFailed, match="has no watch"),
        ):
            answers.until("done")
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
@reachable
def test_a_process_that_forks_meanwhile_is_captured(
    tmp_path: Path, started: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    """Each step forks a child that steps too and ends: the trace is of the process itself."""
    forks = (
        "    child = os.fork()\n    if not child:\n        optimizer.step()\n        os._exit(0)\n"
        "    os.waitpid(child, 0)\n"
    )
    process = started(
        TRAIN.replace("    wait()\n", f"    wait()\n{forks}", 1).replace("import sys", "import os, sys", 1)
    )
    with attached(process_of(process.pid), Order("capture", str(tmp_path / "out"), steps=2, warmup=1)) as answers:
        done = answers.until("done")
    assert [Path(path).exists() for path in done["done"]] == [True]
    assert len(list((tmp_path / "out").iterdir())) == 1
    assert settled(tmp_path)[1:] == [0, 0]
    assert process.poll() is None


@pytest.mark.slow
@reachable
def test_a_process_without_torch_says_so(tmp_path: Path, started: Callable[[str], subprocess.Popen[bytes]]) -> None:
    process = started("import time\nopen('state', 'w').write('x')\nwhile True:\n    time.sleep(0.01)\n")
    with (
        attached(process_of(process.pid), Order("capture", str(tmp_path / "out"))) as answers,
        pytest.raises(ProgramFailed, match="hasn't imported torch"),
    ):
        answers.until("done")
    assert process.poll() is None


@pytest.mark.slow
@reachable
def test_a_process_that_ends_meanwhile_is_reported_to_have(
    tmp_path: Path, started: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    """No step comes: its loop is none that is captured."""
    process = started("import torch, time\nopen('state', 'w').write('x')\nfor _ in range(600):\n    time.sleep(0.01)\n")
    with attached(process_of(process.pid), Order("capture", str(tmp_path / "out"))) as answers:
        process.kill()
        process.wait()
        with pytest.raises(ProgramFailed, match=r"has ended|ended before it answered"):
            answers.until("done")


@pytest.mark.slow
@reachable
def test_a_capture_ends_with_its_program(tmp_path: Path, started: Callable[[str], subprocess.Popen[bytes]]) -> None:
    """The profiler is stopped before the interpreter is torn down; the steps so far are written."""
    process = started(
        TRAIN.replace("while True:", "while not os.path.exists('over'):").replace("import sys", "import os, sys")
    )
    with attached(process_of(process.pid), Order("capture", str(tmp_path / "out"), steps=100_000)) as answers:
        answers.until("begun")
        until(lambda: state(tmp_path)[1] > 0)  # the capture counts the optimizer's steps from here on
        steps_on(tmp_path, 50)
        (tmp_path / "over").touch()
        done = answers.until("done")
    assert process.wait(120) == 0
    assert [Path(path).parent for path in done["done"]] == [tmp_path / "out"]


def test_what_can_not_be_attached_to_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process, no Python, another user's."""
    sleep = subprocess.Popen(["sleep", "60"])
    try:
        with pytest.raises(UsageError, match="Process 999999999 doesn't exist"):
            process_of(999999999)
        with pytest.raises(UsageError, match="not Python"):
            process_of(sleep.pid)
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        with pytest.raises(UsageError, match="another user"):
            process_of(sleep.pid)
    finally:
        sleep.kill()
        sleep.wait()


def test_the_system_s_settings_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ptrace's scope, where it is on and this command has no capability."""
    text, exists = Path.read_text, Path.exists
    scope = "/proc/sys/kernel/yama/ptrace_scope"
    monkeypatch.setattr(Path, "exists", lambda path: str(path) == scope or exists(path))
    monkeypatch.setattr(Path, "read_text", lambda path, *a, **k: "1" if str(path) == scope else text(path, *a, **k))
    monkeypatch.setattr("syncscan.watching.code_injection._capable", lambda: False)
    with pytest.raises(UsageError, match=r"ptrace_scope is 1.*sysctl"):
        process_of(os.getpid())


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python needs no debugger")
def test_without_a_debugger_the_reason_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    process = process_of(os.getpid())
    with pytest.raises(UsageError, match="needs gdb or lldb"), attached(process, Order("stop")):
        pass


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python needs no debugger")
@pytest.mark.skipif(shutil.which("lldb") is None, reason="needs lldb")
def test_lldb_does_it_where_there_is_no_gdb(
    tmp_path: Path, started: Callable[[str], subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "gdb" else which(name))
    process = started(TRAIN)
    with attached(process_of(process.pid), Order("capture", str(tmp_path / "out"), steps=2, warmup=1)) as answers:
        done = answers.until("done")
    assert [Path(path).exists() for path in done["done"]] == [True]
    assert settled(tmp_path)[1:] == [0, 0]
    assert process.poll() is None


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python needs no debugger")
def test_lldb_s_refusal_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first error is the reason."""
    lldb = tmp_path / "lldb"
    lldb.write_text("#!/bin/sh\necho 'error: attach failed: Operation not permitted'\n")
    lldb.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(lldb) if name == "lldb" else None)
    process = process_of(os.getpid())
    with pytest.raises(UsageError, match=r"lldb couldn't attach .*: attach failed: Operation not permitted\."):
        run_line(process, tmp_path / "begin.py")


@pytest.mark.slow
@reachable
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python 3.14 needs no debugger")
def test_a_gdb_that_would_end_the_process_changes_nothing(
    tmp_path: Path, started: Callable[[str], subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where gdb can't write one register, here as there is none of that name, it calls no function."""
    process = process_of(started(TRAIN).pid)
    orders = tmp_path / "orders.py"
    orders.write_text(f"open({str(tmp_path / 'called')!r}, 'w')")
    monkeypatch.setattr(code_injection, "_GDB", code_injection._GDB.replace('"set var $mxcsr', '"set var $none.there'))
    with pytest.raises(UsageError, match=r"gdb [\d.]+.* can't write this processor's registers, .* It goes on\."):
        run_line(process, orders)
    steps_on(tmp_path)
    assert not (tmp_path / "called").exists()


def test_a_debugger_that_is_at_work_is_not_ended_by_ctrl_c(tmp_path: Path) -> None:
    """It would leave the process in the midst of a call: Ctrl-C in the terminal waits until it has let go."""
    code = (
        "from syncscan.watching.code_injection import run_debugger\n"
        "run_debugger(['sh', '-c', 'touch begun; sleep 1.5; touch ended'])\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, start_new_session=True
    )
    until((tmp_path / "begun").exists)
    os.killpg(command.pid, signal.SIGINT)
    _, error = command.communicate(timeout=300)
    assert (tmp_path / "ended").exists()
    assert error.decode().splitlines()[-1] == "KeyboardInterrupt"


def test_an_answer_to_nobody_is_lost(tmp_path: Path) -> None:
    """Who asked has gone, and with it the folder; a command that was killed left its own, which is removed."""
    answer(tmp_path / "gone", done=[])
    assert not (tmp_path / "gone").exists()
    ended = subprocess.Popen(["true"])
    ended.wait()
    killed = tmp_path / "killed"
    killed.mkdir()
    Order("stop", asker=ended.pid).write(killed)
    answer(killed, done=[])
    assert not killed.exists()
    answer(tmp_path, failed="disk full")
    with pytest.raises(ProgramFailed, match="disk full"):
        Answers(process_of(os.getpid()), tmp_path).until("done")
