"""Sample a thread's position for as long as a program runs, without stopping it.

A thread asks for all frames. It needs the interpreter's lock, and gets it where the other lets go of it, which is in a
wait rather than before: so it sees somewhat too much of waits, by Python's switch interval of 5 ms each at most.

The kernel's timer (`capture.ticks`) sees the main thread wherever it is, as each tick that passes inside a call of C's
counts for its line. But Python handles a signal at the next call or jump: a wait in a truth value (`if mask.any():`)
counts for a later line. On an H100 (torch 2.11, Python 3.12, `benchmarks/watch_shares.py`, 485 samples each) eight
lines of 2 to 97 % of the step were within 2.2 points by the thread; by the timer seven were within 0.8, and a truth
value's 14 % were missed.
"""

from __future__ import annotations

import sys
import threading
import time
from types import CodeType, FrameType
from typing import NamedTuple, Protocol

from syncscan.capture.ticks import NotSampled, Ticks

RATE = 23
"""Samples a second, each of 40 to 60 µs: a thousandth of the time. A prime, as no step's length is a multiple then."""
MOST_FRAMES = 200
"""Most frames of a stack that are read, innermost first."""


class Tick(NamedTuple):
    """A sample: how many times it counts, the stack (code, instruction, innermost first) and `monotonic_ns`."""

    times: int
    stack: list[CodeType | int]
    at: int


class Sampler(Protocol):
    """Samples one thread, from `start` until `stop`."""

    name: str

    def start(self) -> None:
        """Start, on the thread that is sampled if that is the main one."""

    def take(self) -> list[Tick]:
        """Return the samples since the last time; on any thread."""

    def stop(self) -> None:
        """Stop, with nothing left behind; may be called twice."""


class TimerSampler:
    """Samples the main thread, which makes it, by a timer of the kernel's.

    Args:
        rate: samples a second.

    Raises:
        NotSampled: this system, this thread or this program can't be sampled so.
    """

    name = "timer"

    def __init__(self, rate: int = RATE) -> None:
        self._ticks = Ticks(rate, time.monotonic_ns)

    def start(self) -> None:
        """Start the timer."""
        self._ticks.start()

    def take(self) -> list[Tick]:
        """Return the samples since the last time."""
        return [Tick(count, stack, at) for count, stack, at in self._ticks.take()]

    def stop(self) -> None:
        """Stop the timer; what wasn't taken is lost."""
        self._ticks.close()


class FrameSampler:
    """Samples any thread by its current frame, from a thread of its own.

    Args:
        thread: its `threading.get_ident`.
        rate: samples a second.
    """

    name = "thread"

    def __init__(self, thread: int, rate: int = RATE) -> None:
        self._watched, self._period = thread, 1_000_000_000 // rate
        self._rows: list[Tick] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="syncscan-sampler", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def take(self) -> list[Tick]:
        """Return the samples since the last time."""
        rows, self._rows = self._rows, []
        return rows

    def stop(self) -> None:
        """Stop the thread."""
        self._over.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(1.0)

    def _run(self) -> None:
        due = time.monotonic_ns() + self._period
        while not self._over.wait(max(0, due - time.monotonic_ns()) / 1e9):
            now = time.monotonic_ns()
            count = 1 + max(0, now - due) // self._period
            due += count * self._period
            self._rows.append(Tick(count, stack_of(sys._current_frames().get(self._watched)), now))


def stack_of(frame: FrameType | None) -> list[CodeType | int]:
    """Return a stack as `Ticks` does: code and instruction, innermost first."""
    stack: list[CodeType | int] = []
    while frame is not None and len(stack) < 2 * MOST_FRAMES:
        stack += (frame.f_code, frame.f_lasti)
        frame = frame.f_back
    return stack


def sampler_of(thread: int, rate: int = RATE, *, timer: bool = False) -> Sampler:
    """Return a sampler of a thread: one that reads its frames, or the timer where that is wanted and can be had.

    Args:
        thread: which, by `threading.get_ident`.
        rate: samples a second.
        timer: take the kernel's timer if the thread is the main one, and the caller.
    """
    if timer and thread == threading.main_thread().ident == threading.get_ident():
        try:
            return TimerSampler(rate)
        except NotSampled:
            pass
    return FrameSampler(thread, rate)


__all__ = ["RATE", "FrameSampler", "Sampler", "Tick", "TimerSampler", "sampler_of", "stack_of"]
