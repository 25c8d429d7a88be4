"""A watch counts a process's steps and lines for as long as it runs, and leaves nothing behind."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

import syncscan
from syncscan.capture.stack_timer import SIGNAL
from syncscan.errors import UsageError
from syncscan.watching.sampler import Sampler
from syncscan.watching.watch import Watch
from syncscan.watching.watch_file import read
from tests.until import until

torch = pytest.importorskip("torch")


def train(steps: int, seconds: float = 0.01) -> None:
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        time.sleep(seconds)


def state() -> tuple[object, ...]:
    """Return what a watch touches: the signal's handler, threads, hooks and finders."""
    hooks = sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks
    names = sorted(thread.name for thread in threading.enumerate() if "syncscan" in thread.name)
    return signal.getsignal(SIGNAL), names, len(hooks), list(sys.meta_path), Watch.running


def test_steps_and_lines_are_counted_and_nothing_is_left(tmp_path: Path) -> None:
    """The slow line is in the window, and the process is as before."""
    with syncscan.watch(
        tmp_path / "first", name="train"
    ):  # after dynamo compiled anything, the hook of the first stays
        train(1)
    before = state()
    with syncscan.watch(tmp_path, name="train", interval=600) as watch:
        train(100)
    assert state() == before
    assert watch.steps == 100
    assert watch.path is not None
    watched = read(watch.path)
    assert watched.begin is not None
    assert (watched.begin.program, watched.begin.pid) == ("train", os.getpid())
    assert sum(w.step.count for w in watched.windows if w.step) == 99
    assert watched.end is not None
    assert watched.end.total_steps == 100
    (window,) = watched.windows
    assert ("test_watch.py", "train") in [(Path(line.file).name, line.function) for line in window.lines]


def prepare() -> None:
    time.sleep(0.4)


def test_what_comes_before_the_first_step_is_no_step_s(tmp_path: Path) -> None:
    """So a line's time per step is at most the step's."""
    with syncscan.watch(tmp_path, interval=600) as watch:
        prepare()
        train(40)
    assert watch.path is not None
    (window,) = read(watch.path).windows
    assert "prepare" not in [line.function for line in window.lines]


def test_a_loop_without_an_optimizer_marks_its_steps(tmp_path: Path) -> None:
    with syncscan.watch(tmp_path, interval=600) as watch:
        for _ in range(20):
            time.sleep(0.02)
            watch.step()
    assert watch.path is not None
    assert watch.steps == 20
    (window,) = read(watch.path).windows
    assert window.step is not None


def test_a_process_is_watched_once(tmp_path: Path) -> None:
    with syncscan.watch(tmp_path), pytest.raises(UsageError, match="already has a watch"):
        syncscan.watch(tmp_path).start()


def test_arguments_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="aren't valid"):
        Watch(tmp_path, interval=0)
    with pytest.raises(UsageError, match="can't export"):
        syncscan.watch(tmp_path, exports=["graphite"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system forks no process")
def test_a_forked_child_is_left_alone(tmp_path: Path) -> None:
    """It steps without the hook, and the file has one process's lines only."""
    with syncscan.watch(tmp_path, interval=0.3) as watch:
        train(10)
        child = os.fork()
        if child == 0:
            train(3, 0.0)
            os._exit(7 if Watch.running is None and watch.steps == 10 else 8)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert watch.path is not None
    assert len([line for line in watch.path.read_text().splitlines() if '"begin"' in line]) == 1


def test_a_thread_that_steps_is_the_one_that_is_sampled(tmp_path: Path) -> None:
    """The main thread only waits for it."""
    with syncscan.watch(tmp_path, interval=600) as watch:
        thread = threading.Thread(target=train, args=(80,))
        thread.start()
        thread.join()
    assert watch.path is not None
    (window,) = read(watch.path).windows
    assert "train" in [line.function for line in window.lines]


def test_a_thread_s_samples_count_the_time_that_passed() -> None:
    """One that comes late counts for the ticks that it missed."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    sampler = Sampler(thread.ident or 0, 100)
    began = time.monotonic()
    sampler.start()
    ticks = []

    def enough() -> bool:
        ticks.extend(sampler.take())
        return sum(tick.times for tick in ticks) >= 40

    until(enough)
    took = time.monotonic() - began
    sampler.stop()
    over.set()
    assert sum(tick.times for tick in ticks) <= 100 * took + 1
    assert all(tick.stack for tick in ticks)


def test_a_process_that_is_killed_leaves_whole_lines(tmp_path: Path, warm_python: str) -> None:
    """All windows that had ended are counted."""
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent("""
        import os, time, torch, syncscan
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
        watch = syncscan.watch("out", interval=0.2).start()
        open("pid", "w").write(str(os.getpid()))
        while True:
            time.sleep(0.01)
            optimizer.step()
        """)
    )
    process = subprocess.Popen([warm_python, str(script)], cwd=tmp_path)
    try:
        until(lambda: any('"window"' in file.read_text() for file in tmp_path.glob("out/*.jsonl")))
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        process.wait()
    finally:
        process.kill()
        process.wait()
    (file,) = (tmp_path / "out").glob("train.*.watch.jsonl")
    watched = read(file)
    assert watched.windows
    assert watched.end is None


def test_a_callback_that_fails_and_a_sink_do_not_end_the_watch(tmp_path: Path) -> None:
    """A callback of the program may raise: the file still has the windows."""

    def sink(record: object) -> None:
        raise ValueError("full")

    with syncscan.watch(tmp_path, interval=0.3, exports=[sink]) as watch:
        train(50)
    assert watch.path is not None
    assert len(read(watch.path).windows) >= 2


@pytest.mark.parametrize("listens", [True, False])
def test_an_alarm_is_printed_where_nobody_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], listens: bool
) -> None:
    """By Python, as the log has no handler; a callback is told instead."""
    monkeypatch.setattr(logging.getLogger("syncscan.watch"), "propagate", False)
    alarms: list[object] = []
    with syncscan.Watch(tmp_path, on_alarm=alarms.append if listens else None) as watch:
        watch._alarm((("train.py", 7, "step"), 0.0, 0.5))
    assert ("train.py:7 waits" in capfd.readouterr().err, len(alarms)) == ((False, 1) if listens else (True, 0))
