"""Late samples: held by the GIL they are no waits, and they are the watched thread's own or another's."""

from __future__ import annotations

import _thread
import hashlib
import sys
import threading
import time
from pathlib import Path

import pytest

from syncscan.watching.sampler import LateSamples, OtherThreads, RunDelay, Sampler, Tick, Wakes, _runs_python
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


def count_left_out(samples: list[bool], holding: float) -> int:
    """Return how many of some samples (did it wait for the lock?) are left out."""
    late = LateSamples()
    return sum(late.left_out(waited, False, holding) for waited in samples)


def test_a_sample_counts_where_no_other_thread_holds_the_lock() -> None:
    """The watched thread did, as no other one is left."""
    assert count_left_out([True, False] * 1000, holding=0.0) == 0


def test_late_samples_are_left_out_for_as_much_of_the_time_as_others_hold_the_lock() -> None:
    """Half of all samples are late, and others hold the lock for a quarter of the time: half of the late are theirs."""
    assert count_left_out([True, False] * 5000, holding=0.25) == pytest.approx(2500, rel=0.05)


def test_all_late_samples_are_another_s_that_holds_the_lock_for_longer() -> None:
    """No more are left out than there are."""
    assert count_left_out([True, False] * 5000, holding=0.9) == pytest.approx(5000, rel=0.02)


def test_a_sample_of_a_known_holder_is_not_counted_twice() -> None:
    """Others hold the lock for a quarter, and the samples that show it are that quarter: the late ones are its own."""
    late = LateSamples()
    left_out = [late.left_out(k % 4 == 0, k % 4 == 1, 0.25) for k in range(8000)]
    assert sum(left_out[4000:]) < 40


def test_processor_time_is_the_lock_s_unless_the_thread_computes_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads use a processor for half of the time; the one that runs while the lock is held elsewhere is in C."""
    clock = iter(range(0, 10**12, 10**6))
    looks = {1: 0, 2: 0}

    def state(thread: int) -> tuple[int, bool]:
        looks[thread] += 1
        return looks[thread] * 500_000, thread == 2 and looks[thread] % 2 == 0

    for thread, share in ((1, 0.5), (2, 0.0)):
        threads = OtherThreads()
        monkeypatch.setattr(threads, "_state", state)
        monkeypatch.setattr("syncscan.watching.sampler.time.monotonic_ns", lambda: next(clock))
        for _ in range(400):
            threads._add(thread)
        assert threads.holding() == pytest.approx(share, abs=0.02)


def test_a_thread_that_computes_without_the_lock_is_not_taken_to_hold_it_by_chance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It runs for half of the time and was met doing so in 8 of 30 looks: too few to say that it held the lock."""
    clock = iter(range(0, 10**12, 10**6))
    threads = OtherThreads()
    states = iter([(k * 500_000, k % 4 == 0) for k in range(31)])
    monkeypatch.setattr(threads, "_state", lambda thread: next(states))
    monkeypatch.setattr("syncscan.watching.sampler.time.monotonic_ns", lambda: next(clock))
    for _ in range(31):
        threads._add(1)
    assert threads.holding() < 0.12


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's times of threads")
def test_a_thread_s_processor_time_and_state_are_read() -> None:
    """A thread that computes without the lock runs; a number of no thread says nothing."""
    over = threading.Event()
    text = bytes(50_000_000)

    def hashes() -> None:
        while not over.is_set():
            hashlib.sha256(text).digest()

    thread = threading.Thread(target=hashes)
    thread.start()

    def computes() -> bool:
        state = OtherThreads()._state(thread.native_id or 0)
        return state is not None and state[0] > 0 and state[1]

    until(computes)
    over.set()
    thread.join()
    assert OtherThreads()._state(2**22 + 1) is None
