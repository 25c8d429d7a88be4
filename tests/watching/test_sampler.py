"""A sample that came late because the sampled thread held the GIL doesn't count as a wait; others do."""

from __future__ import annotations

import _thread
import sys
import threading
import time
from pathlib import Path

import pytest

from syncscan.watching.sampler import RunDelay, Sampler, Tick, Wakes, _runs_python
from syncscan.watching.thread_position import ThreadPosition
from syncscan.watching.watch import Watch
from tests.until import until

US = 1000


def test_a_late_sample_waited_for_the_gil() -> None:
    """Usual ones come 60 µs late; one of 3 ms was blocked by Python, one of 40 ms by a single call."""
    wakes = Wakes()
    assert not any(wakes.waited_for_gil(60 * US) for _ in range(64))
    assert wakes.waited_for_gil(3000 * US)
    assert not wakes.waited_for_gil(40_000 * US)


def test_a_machine_that_wakes_slowly_has_a_higher_limit() -> None:
    """Where every sample comes 0.8 ms late, none of them says anything."""
    wakes = Wakes()
    for _ in range(64):
        wakes.waited_for_gil(800 * US)
    assert not wakes.waited_for_gil(900 * US)
    assert wakes.waited_for_gil(3000 * US)


def test_python_before_a_wait_is_not_the_wait() -> None:
    """A thread runs Python for 4 ms and then waits for 4: of the samples in waits that held the GIL half are told."""
    over = threading.Event()

    def wait() -> None:
        time.sleep(0.004)

    def run() -> None:
        while not over.is_set():
            until = time.monotonic() + 0.004
            while time.monotonic() < until:
                pass
            wait()

    thread = threading.Thread(target=run)
    thread.start()
    sampler = Sampler(thread.ident or 0, 199)
    sampler.start()
    ran: set[bool] = set()

    def both() -> bool:
        ticks = sampler.take()
        ran.update(t.ran for t in ticks if any(getattr(code, "co_name", "") == "wait" for code in t.stack[::2]))
        return ran == {True, False}

    until(both)
    sampler.stop()
    over.set()
    thread.join()


def test_a_backward_pass_s_python_on_the_engine_s_own_thread_counts_as_called_by_backward() -> None:
    """A thread that C++ started has no frame of `threading`; one of the program's, beside it, isn't taken for it."""
    over, engine = threading.Event(), threading.Lock()
    engine.acquire()

    def reads_gradient() -> None:
        over.wait()

    def computes() -> None:
        over.wait()

    def _engine_run_backward() -> None:
        threading.Thread(target=computes).start()
        _thread.start_new_thread(reads_gradient, ())
        engine.acquire()

    thread = threading.Thread(target=_engine_run_backward)
    thread.start()
    sampler = Sampler(thread.ident or 0, 199)
    sampler.start()

    def stood() -> list[list[str]]:
        names = [[getattr(code, "co_name", "") for code in tick.stack[::2]] for tick in sampler.take()]
        return [stack for stack in names if "reads_gradient" in stack]

    stack = until(stood)[-1]
    sampler.stop()
    over.set()
    engine.release()
    thread.join()
    assert [name for name in stack if name in ("reads_gradient", "computes", "_engine_run_backward")] == [
        "reads_gradient",
        "_engine_run_backward",
    ]


@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="needs Linux's schedstat")
def test_the_time_without_a_core_is_read_and_the_file_is_closed() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    delay = RunDelay()
    assert delay.since_last() >= 0
    delay.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_sample_that_ran_python_is_no_wait(tmp_path: Path) -> None:
    watch = Watch(tmp_path, lazy=True, hook=False).start()
    watch.stop()
    watch._places = lambda stack: ThreadPosition("train.py", 3, "step", "device", "item")  # type: ignore[assignment]
    assert watch._count_sample(Tick(1, [], 5))[1] == ("train.py", 3, "step")
    assert watch._count_sample(Tick(1, [], 5, ran=True))[1] is None


def test_a_thread_that_was_interrupted_in_python_is_distinguished_from_one_in_a_call() -> None:
    """A late sample may have waited for the former, whatever the watched thread did."""

    def loops() -> None:
        while not over:
            pass

    over: list[int] = []
    lock = threading.Lock()
    lock.acquire()
    threads = [threading.Thread(target=loops), threading.Thread(target=lock.acquire)]
    for thread in threads:
        thread.start()

    def runs() -> list[bool]:
        frames = sys._current_frames()
        return [_runs_python(frames[thread.ident or 0]) for thread in threads]

    until(lambda: runs() == [True, False])
    over.append(1)
    lock.release()
    for thread in threads:
        thread.join()
