"""Estimate how much of the time other threads hold the interpreter's lock, by their processor time alone.

Linux counts for how long each thread runs, or is ready to and has no core. Such a thread holds the lock, or computes in
C without it. Whoever looks holds the lock, so a thread that runs at that moment computes without it. What is left of
the time is the lock's.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import sys
import threading
import time
from typing import Any, NamedTuple

MOST_THREADS = 16
"""Most threads that are looked at; the others are those of the program that started last."""
_WEIGHT = 1 / 240
"""Weight of a look in the means: they follow a change in two minutes, at two looks per second."""
_SETTLES_NS = 60_000
"""Time for which the lock is held before a look: a thread that has just handed it over runs for a moment more."""
_SAMPLE_WEIGHT = 1 / 500
"""Weight of a sample in the mean of those that waited: 20 s of samples."""


class _Runtime(NamedTuple):
    """Time for which a thread has run or was ready to (ns), and when that was read (ns)."""

    used: int
    at: int


class _Means(NamedTuple):
    """Means over a thread's looks: the time that the lock may take, how often it ran, and over how many looks."""

    share: float = 0.0
    runs: float = 0.0
    looks: int = 0

    def with_look(self, share: float, runs: bool) -> _Means:
        weight = max(_WEIGHT, 1 / (self.looks + 1))
        return _Means(
            self.share + (share - self.share) * weight, self.runs + (runs - self.runs) * weight, self.looks + 1
        )

    def least(self) -> float:
        """Return the share less twice its standard error, which comes from how often the thread ran; at least 0."""
        counted = max(1.0, min(float(self.looks), 2 / _WEIGHT))
        return max(0.0, self.share - 2 * math.sqrt(self.runs * (1 - self.runs) / counted))


class OtherThreads:
    """Follows the program's other threads; `look` twice a second."""

    def __init__(self) -> None:
        self._last: dict[int, _Runtime] = {}
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
        before, self._last[thread] = self._last.get(thread), _Runtime(used, now)
        if before is None or now <= before.at:
            return
        share = (used - before.used) / (now - before.at) - runs
        self._means[thread] = self._means.get(thread, _Means()).with_look(share, runs)

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
        self._owed, self._count = 0.0, 0

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
        self._owed += min(1.0, max(0.0, holding - self._others) / unclear)
        if self._owed < 1.0:
            return False
        self._owed -= 1.0
        return True
