"""Measure what the step's thread and other Python threads used between the ticks of a sampler.

That a thread wanted the interpreter's lock and didn't get it, no clock tells. But what holds the lock runs, and what
waits for it does not: time in which the step's thread was off its core while another one of Python's ran.

A read costs 2 µs, and 2 to 6 more for each other thread (2 cores, a virtual machine).
"""

from __future__ import annotations

import importlib
import itertools
import mmap
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any, NamedTuple

from syncscan.capture.stack_frames import outward

MOST_THREADS = 8
"""Most other threads that are followed: each costs some µs per tick."""
LOOK_NS = 50_000_000
"""Interval after which threads are listed again, ns."""
BUSY = 0.2
"""Fraction of the time since the last tick from which a running thread's stack is recorded."""
_TRIED, _TRIES = 4 << 20, 3
"""Bytes of fresh memory that are touched to measure a page fault, and how often: 2 ms each on a slow machine."""
_PAGE = 4096
_READS = 9
"""Reads that are timed to know what one takes: 2 to 10 µs each."""


class Read(NamedTuple):
    """Resources used so far: core time of the thread itself and of each other one (by native id), and memory.

    Times in ns; `faults` counts pages of memory that the thread touched first, `system` is its time in the system's own
    code.
    """

    at: int
    cpu: int
    faults: int
    system: int
    others: dict[int, int]
    stacks: dict[int, list[Any]]
    """Stacks of the threads that ran: code, instruction, code, instruction …, innermost first."""


class UsageDifference(NamedTuple):
    """Events between two reads: the step's thread off its core, others that ran, pages first touched."""

    wall: int
    off: int
    ran: dict[int, int]
    faults: int
    system: int

    @property
    def touching(self) -> int:
        """Return the time in system code while the thread touched pages first: nearly all of it for that."""
        return self.system if self.faults else 0

    @property
    def stopped(self) -> int:
        """Return how long others can have stopped the step's thread, ns: off its core while they ran."""
        return min(self.off, sum(self.ran.values()))


class Meter:
    """Measures what the thread that creates it uses, and what the process's other Python threads do."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self._followed: dict[int, tuple[int, int]] = {}
        self._looked = 0
        self._last: dict[int, int] = {}
        self._last_at = 0
        self._thread = threading.get_native_id()
        self._usage: Callable[[], tuple[int, int, int]] = lambda: (0, 0, 0)
        self._delayed: int | None = None
        self._huge: int | None = None

    def start(self) -> Read:
        """Start measuring; return the resources used so far."""
        self._usage = _usage()
        self._delayed = self._waited()
        self._huge = _huge_pages()
        self.follow()
        return self.read()

    def follow(self) -> None:
        """Update the list of threads, unless that was just done. To be called between two steps."""
        now = time.monotonic_ns()
        if now - self._looked < LOOK_NS:
            return
        self._looked = now
        if not _locked():
            return
        threads = [t for t in threading.enumerate() if t.native_id not in (None, self._thread) and t.ident is not None]
        threads.sort(key=lambda t: -self._last.get(t.native_id or 0, 0))
        self.names.update({t.native_id or 0: t.name for t in threads})
        self._followed = {t.native_id or 0: (_clock_of(t.native_id or 0), t.ident or 0) for t in threads[:MOST_THREADS]}

    def read(self) -> Read:
        """Return the resources used so far; safe in a signal handler."""
        cpu, faults, system = self._usage()
        now = time.monotonic_ns()
        if not self._followed:
            return Read(now, cpu, faults, system, {}, {})
        used = {}
        for thread, (clock, _) in self._followed.items():
            with suppress(OSError):  # it has ended
                used[thread] = time.clock_gettime_ns(clock)
        least = BUSY * (now - self._last_at)
        ran = [thread for thread, ns in used.items() if ns - self._last.get(thread, ns) > least]
        self._last, self._last_at = used, now
        return Read(now, cpu, faults, system, used, self._stacks(ran) if ran else {})

    def cost_ns(self) -> float:
        """Return how long a read takes at present, in ns."""
        self.start()
        clock, costs = time.monotonic_ns, []
        for _ in range(_READS):
            began = clock()
            self.read()
            costs.append(clock() - began)
        return float(sorted(costs)[len(costs) // 2])

    def delayed_ns(self) -> int | None:
        """Return how long the thread has waited for a core since the start; None where unknown."""
        now = self._waited()
        return now - self._delayed if now is not None and self._delayed is not None else None

    def huge_pages(self) -> int | None:
        """Return how many huge pages were created for anyone since the start; None where unknown."""
        now = _huge_pages()
        return now - self._huge if now is not None and self._huge is not None else None

    def fault_ns(self) -> float | None:
        """Return the current cost of touching and releasing a page on this machine; None where none is counted."""
        costs = [cost for cost in (self._tried() for _ in range(_TRIES)) if cost is not None]
        return min(costs, default=None)  # other threads' work in between only adds to it

    def _tried(self) -> float | None:
        cpu, faults, _ = self._usage()
        with mmap.mmap(-1, _TRIED, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as fresh:
            fresh[::_PAGE] = bytes(_TRIED // _PAGE)
        now, more, _ = self._usage()
        return (now - cpu) / (more - faults) if more > faults else None

    def _waited(self) -> int | None:
        """Return how long the thread was ever ready to run without a core, ns."""
        with suppress(OSError, ValueError, IndexError), open(f"/proc/self/task/{self._thread}/schedstat") as file:
            return int(file.read().split()[1])
        return None

    def _stacks(self, threads: Iterable[int]) -> dict[int, list[Any]]:
        frames = sys._current_frames()
        return {t: _stack(frames[ident]) for t in threads if (ident := self._followed[t][1]) in frames}


def between(reads: Sequence[Read]) -> list[UsageDifference]:
    return [
        UsageDifference(
            wall=b.at - a.at,
            off=max(0, (b.at - a.at) - (b.cpu - a.cpu)),
            ran={t: max(0, ns - a.others[t]) for t, ns in b.others.items() if t in a.others},
            faults=max(0, b.faults - a.faults),
            system=max(0, b.system - a.system),
        )
        for a, b in itertools.pairwise(reads)
    ]


def ran(parts: Iterable[UsageDifference]) -> dict[int, tuple[int, int]]:
    """Return how long each other thread ran, and how much of that at least while the step's was off its core, ns."""
    total: Counter[int] = Counter()
    beside: Counter[int] = Counter()
    for part in parts:
        for thread, ns in part.ran.items():
            total[thread] += ns
            beside[thread] += min(ns, part.off)
    return {thread: (ns, beside[thread]) for thread, ns in total.items()}


def _stack(frame: FrameType) -> list[Any]:
    return [part for f in outward(frame) for part in (f.f_code, f.f_lasti)]


def _locked() -> bool:
    """Return whether threads exclude each other: not in a build without the GIL, where it is off."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def _clock_of(thread: int) -> int:
    """Return the id of a thread's CPU clock, as the kernel numbers it (include/linux/posix-timers_types.h).

    `time.pthread_getcpuclockid` gives the same, and may crash where the thread has ended.
    """
    return (~thread << 3) | 6


def _huge_pages() -> int | None:
    """Return how many huge pages the system ever created at a first touch, for all processes."""
    with suppress(OSError, ValueError, IndexError), open("/proc/vmstat") as file:
        return next((int(line.split()[1]) for line in file if line.startswith("thp_fault_alloc ")), None)
    return None


def _usage() -> Callable[[], tuple[int, int, int]]:
    """Return a function for this thread's usage: ns on its core, pages touched first, ns in system code.

    `getrusage` counts the core's time too, but brings it up to date only at the system's own ticks, some ms apart, and
    divides it by what it finds there: over some hundred of them that is true.
    """
    resource = importlib.import_module("resource")  # not on Windows, where nothing is sampled
    who, get, ran = resource.RUSAGE_THREAD, resource.getrusage, time.thread_time_ns

    def usage() -> tuple[int, int, int]:
        used = get(who)
        return ran(), used.ru_minflt, int(used.ru_stime * 1e9)

    return usage
