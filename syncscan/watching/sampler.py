"""Sample a thread's position for as long as a program runs, without stopping it.

A thread asks for all frames. It needs the GIL, and gets it where the other thread releases it: in a wait rather than in
the Python before it. So a sample that comes late, by up to the switch interval of 5 ms, says that the other thread ran
Python when the sample was due. Such a sample doesn't count as a wait (`Tick.ran`).

How much of the time other threads hold the lock is estimated by their processor time alone. Linux counts for how long
each thread runs, or is ready to and has no core. Such a thread holds the lock, or computes in C without it. Whoever
looks holds the lock, so a thread that runs at that moment computes without it. What is left of the time is the lock's.

On an H100 (torch 2.11, Python 3.12, `benchmarks/watched_programs.py`) 37 of 39 lines in 30 programs were within 3
points.
"""

from __future__ import annotations

import contextlib
import ctypes
import dis
import functools
import itertools
import math
import os
import sys
import threading
import time
from collections import deque
from types import CodeType, FrameType
from typing import Any, NamedTuple

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


MOST_THREADS = 16
"""Most threads that are looked at; the others are those of the program that started last."""
_WEIGHT = 1 / 240
"""Weight of a look in the means: they follow a change in two minutes, at two looks per second."""
_SETTLES_NS = 60_000
"""Time for which the lock is held before a look: a thread that has just handed it over runs for a moment more."""
_SAMPLE_WEIGHT = 1 / 500
"""Weight of a sample in the mean of those that waited: 20 s of samples."""


class _Means:
    """Means over a thread's looks: the time that the lock may take, and how often it ran."""

    def __init__(self) -> None:
        self.share = self.runs = 0.0
        self.looks = 0

    def add(self, share: float, runs: bool) -> None:
        self.looks += 1
        weight = max(_WEIGHT, 1 / self.looks)
        self.share += (share - self.share) * weight
        self.runs += (runs - self.runs) * weight

    def least(self) -> float:
        """Return the share less twice its standard error, which comes from how often the thread ran; at least 0."""
        counted = max(1.0, min(float(self.looks), 2 / _WEIGHT))
        return max(0.0, self.share - 2 * math.sqrt(self.runs * (1 - self.runs) / counted))


class OtherThreads:
    """Follows the program's other threads; `look` twice a second."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[int, int]] = {}
        """For how long each thread had run or was ready to at the last look, and when that was; ns."""
        self._means: dict[int, _Means] = {}
        self._buffer = ctypes.create_string_buffer(512)
        self._library: Any = None
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                self._library = ctypes.PyDLL(None)  # keeps the interpreter's lock, which os.open and os.read release

    def look(self, watched: int) -> None:
        """Read for how long each thread has run, and whether it runs now."""
        threads: list[int] = [
            thread.native_id
            for thread in threading.enumerate()
            if thread.ident != watched and thread.native_id and not thread.name.startswith("syncscan")
        ][:MOST_THREADS]
        self._means = {thread: self._means[thread] for thread in threads if thread in self._means}
        self._last = {thread: self._last[thread] for thread in threads if thread in self._last}
        until = time.monotonic_ns() + _SETTLES_NS
        while time.monotonic_ns() < until:
            pass
        for thread in threads:
            self._add(thread)

    def holding(self) -> float:
        """Return the part of the time, 0 to 1, that these threads hold the lock at least."""
        return min(1.0, sum(means.least() for means in self._means.values()))

    def _add(self, thread: int) -> None:
        now = time.monotonic_ns()
        state = self._state(thread)
        if state is None:
            return
        used, runs = state
        before, self._last[thread] = self._last.get(thread), (used, now)
        if before is None or now <= before[1]:
            return
        share = (used - before[0]) / (now - before[1]) - runs
        self._means.setdefault(thread, _Means()).add(share, runs)

    def _state(self, thread: int) -> tuple[int, bool] | None:
        """Return for how long a thread ran or was ready to, in ns, and whether it is; None if nothing says so."""
        fields = self._text(f"/proc/self/task/{thread}/stat").rpartition(b")")[2].split()
        times = self._text(f"/proc/self/task/{thread}/schedstat").split()
        return (int(times[0]) + int(times[1]), fields[0] == b"R") if fields and len(times) > 1 else None

    def _text(self, path: str) -> bytes:
        """Return the begin of a file; nothing where it can't be read."""
        file = self._library.open(path.encode(), os.O_RDONLY | os.O_CLOEXEC) if self._library is not None else -1
        if file < 0:
            return b""
        count = self._library.read(file, self._buffer, len(self._buffer))
        self._library.close(file)
        return self._buffer.raw[: max(0, count)]


class LateSamples:
    """Judges of samples that waited for the interpreter's lock whether the watched thread held it, or another one.

    A sample alone doesn't show who held the lock. But of all samples that waited, others hold it for the part of the
    time that `OtherThreads` says; so many are left out, as if they had never been due, spread evenly.
    """

    def __init__(self) -> None:
        self._late = self._others = 0.0
        self._to_leave_out, self._count = 0.0, 0

    def left_out(self, waited: bool, others_run: bool, holding: float) -> bool:
        """Return whether a sample doesn't count, because another thread held the lock when it was due.

        Args:
            waited: the sample waited for the lock, and no other thread is known to have held it.
            others_run: the sample waited, and another thread was interrupted in Python: that one held it.
            holding: the part of the time that other threads hold the lock.
        """
        self._count += 1
        weight = max(_SAMPLE_WEIGHT, 1 / self._count)
        self._late += (float(waited or others_run) - self._late) * weight
        self._others += (float(others_run) - self._others) * weight
        unclear = self._late - self._others
        if not waited or unclear <= 0:
            return False
        self._to_leave_out += min(1.0, max(0.0, holding - self._others) / unclear)
        if self._to_leave_out < 1.0:
            return False
        self._to_leave_out -= 1.0
        return True
