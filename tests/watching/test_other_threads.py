"""Late samples are the watched thread's own or another's, by the processor time of the others."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import pytest

from syncscan.watching.sampler import LateSamples, OtherThreads
from tests.until import until


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
