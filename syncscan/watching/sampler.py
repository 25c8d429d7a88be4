"""Sample a thread's position for as long as a program runs, without stopping it.

A thread asks for all frames. It needs the GIL, and gets it where the other thread releases it: in a wait rather than in
the Python before it. So a sample that comes late, by up to the switch interval of 5 ms, says that the other thread ran
Python when the sample was due. Such a sample doesn't count as a wait (`Tick.ran`).
On an H100 (torch 2.11, Python 3.12, `benchmarks/watched_programs.py`) 37 of 39 lines in 30 programs were within 3
points.
"""

from __future__ import annotations

import contextlib
import ctypes
import dis
import functools
import itertools
import os
import sys
import threading
import time
from collections import deque
from types import CodeType, FrameType
from typing import NamedTuple

from syncscan.capture.stack_frames import outward

RATE = 23
"""Samples a second. A prime, as no step's length is a multiple then. On an H100 each cost a busy host 0.3 ms when it
took the GIL twice (`benchmarks/watch_cost.py`)."""
RUNS_BACKWARD = "_engine_run_backward"
"""torch's function that starts autograd's engine and waits for it (torch/autograd/graph.py); on a device, that
engine runs a backward pass's Python (a `Function`'s, a hook's) on its own thread, whose frames count as called here."""
MOST_FRAMES = 200
"""Most frames of a stack that are read, innermost first."""


LEAST_LATE_NS, MOST_LATE_NS = 150_000, 2_500_000
"""Bounds of the lateness from which the sampled thread held the GIL; a thread that only wakes up takes some 0.1 ms."""
SLACK_NS = 1_000_000
"""Time beyond the switch interval in which Python hands over the GIL. What takes longer is one call that keeps the GIL,
and the thread still stands at that call's line."""


class Tick(NamedTuple):
    """A sample.

    `times` is how many periods it counts for, `stack` code and instruction, innermost first, `at` when it was taken (ns
    of `time.monotonic_ns`), `late` how long after it was due. `ran` is whether the thread, or another one that
    can't be known, ran Python when the sample was due, and `others_ran` whether another one did that is known.
    """

    times: int
    stack: list[CodeType | int]
    at: int
    late: int = 0
    ran: bool = False
    others_ran: bool = False


class Sampler:
    """Samples any thread by its current frame, from a thread of its own."""

    def __init__(self, thread: int, rate: int = RATE) -> None:
        self._watched, self._period = thread, 1_000_000_000 // rate
        self._rows: list[Tick] = []
        self._over = False
        self._thread = threading.Thread(target=self._run, name="syncscan-sampler", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def take(self) -> list[Tick]:
        """Return the samples since the last time."""
        rows, self._rows = self._rows, []
        return rows

    def stop(self) -> None:
        """Stop the thread; waits for it for up to two periods."""
        self._over = True
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(1.0 + 2 * self._period / 1e9)

    def _run(self) -> None:
        """Sample at a fixed rate; between two sleeps nothing releases the GIL, which it would wait for again."""
        delay, wakes = RunDelay(), Wakes()
        due = time.monotonic_ns() + self._period
        while not self._over:
            time.sleep(max(0, due - time.monotonic_ns()) / 1e9)
            now = time.monotonic_ns()
            late, count = now - due - delay.since_last(), 1 + max(0, now - due) // self._period
            due += count * self._period
            self._rows.append(self._sample(now, late, count, wakes.waited_for_gil(late)))
        delay.close()

    def _sample(self, now: int, late: int, count: int, waited: bool) -> Tick:
        """Return a sample; it waited for the watched thread, unless another one ran Python."""
        frames = sys._current_frames()
        frames.pop(threading.get_ident(), None)
        watched = frames.pop(self._watched, None)
        stack = stack_of(watched)
        if watched is not None and watched.f_code.co_name == RUNS_BACKWARD:
            engine = next((ident for ident, frame in frames.items() if not _is_started_by_python(frame)), None)
            if engine is not None:
                stack = stack_of(frames.pop(engine)) + stack
        others_ran = waited and any(map(_runs_python, frames.values()))
        return Tick(count, stack, now, late, waited and not others_ran, others_ran=others_ran)


def _is_started_by_python(frame: FrameType) -> bool:
    """Return whether a thread's outermost frame is that of `threading`; a thread of C++ has only what that calls."""
    return [*outward(frame)][-1].f_code.co_name in ("_bootstrap", "<module>")


def _runs_python(frame: FrameType) -> bool:
    """Return whether a thread was interrupted between two instructions, and isn't in a call of C's."""
    return _instruction(frame.f_code, frame.f_lasti).startswith(("JUMP", "POP_JUMP", "RESUME"))


@functools.lru_cache(1024)
def _instruction(code: CodeType, at: int) -> str:
    return dis.opname[code.co_code[at]] if 0 <= at < len(code.co_code) else ""


class Wakes:
    """Separates samples that waited for the GIL from those whose thread only took its usual time to wake up."""

    def __init__(self) -> None:
        self._late: deque[int] = deque(maxlen=64)
        self._limit, self._count = MOST_LATE_NS // 5, 0

    def waited_for_gil(self, late: int) -> bool:
        """Return whether a sample waited for the GIL."""
        self._late.append(late)
        self._count += 1
        if self._count % 16 == 0:
            usual = sorted(self._late)[len(self._late) // 16]
            self._limit = min(max(LEAST_LATE_NS, 3 * usual // 2 + 50_000), MOST_LATE_NS)
        return self._limit < late < sys.getswitchinterval() * 1e9 + SLACK_NS


class RunDelay:
    """Time that the calling thread was ready and had no core, by Linux's `schedstat`; 0 where the system has none."""

    def __init__(self) -> None:
        self._file = -1
        with contextlib.suppress(OSError, AttributeError):
            self._read = ctypes.PyDLL(None).pread  # keeps the GIL, which os.pread releases
            self._file = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        self._buffer = ctypes.create_string_buffer(64)
        self._last = 0
        self.since_last()

    def since_last(self) -> int:
        """Return the time in ns since the last call."""
        if self._file < 0 or self._read(self._file, self._buffer, 63, ctypes.c_long(0)) <= 0:
            return 0
        before, self._last = self._last, int(self._buffer.value.split()[1])
        return self._last - before

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)


def stack_of(frame: FrameType | None) -> list[CodeType | int]:
    """Return a stack as `Ticks` does: code and instruction, innermost first."""
    return [part for f in itertools.islice(outward(frame), MOST_FRAMES) for part in (f.f_code, f.f_lasti)]
