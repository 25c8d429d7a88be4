"""Find the profiler's own work on host threads: time that a step takes only while recorded, and its last synchronize.

CUPTI reports its costs in rows of its own (`overhead`), which kineto writes on no thread's track. The blocked thread is
the one of the call around the row, or the steps' thread if that does nothing meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from syncscan.facts.paths import frames_around
from syncscan.model.arrays import Int64, distinct
from syncscan.model.interval import Cover, Interval, ThreadInterval, cover_of
from syncscan.model.runtime_calls import is_device_synchronize, is_queue_finish
from syncscan.model.trace import CALLS, HOST, NONE, Category, Trace, once

_ADJACENT_NS = 20_000
"""Longest time from the end of one queue's wait to the next call, as torch waits for all queues of a device in a C++
loop."""


@once
def profiler_syncs(trace: Trace) -> Int64:
    """Return the rows of the profiler's own closing synchronize calls, in time order; see `profiler_sync`.

    On an Intel device there is no device synchronize: torch waits for all its queues in turn (c10/xpu/XPUStream.cpp,
    `syncStreamsOnDevice`).
    """
    row = profiler_sync(trace)
    return np.array([row], np.int64) if row != NONE else _queues(trace)


def _queues(trace: Trace) -> Int64:
    """Return the last sequence of calls that each wait for a queue, if it is the profiler's; else nothing."""
    s, rows = trace.slices, trace.where(is_queue_finish, *CALLS)
    rows = rows[np.argsort(s.ts[rows], kind="stable")]
    if not len(rows) or _is_programs(trace, int(rows[-1])):
        return rows[:0]
    apart = (s.ts[rows[1:]] - s.end[rows[:-1]] > _ADJACENT_NS) | (s.parent[rows[1:]] != s.parent[rows[:-1]])
    first = int(np.flatnonzero(np.append(True, apart))[-1])
    return rows[first:]


def profiler_sync(trace: Trace) -> int:
    """Return the row of the profiler's own closing device synchronize, or NONE.

    `torch.autograd.profiler.profile.__exit__` synchronizes the device before it stops collecting: a device synchronize
    outside of every step and op, with no launch after it. In a trace with stacks, it lies below the profiler's own
    frame (torch/autograd/profiler.py).
    """
    rows = trace.where(is_device_synchronize, *CALLS)
    if not len(rows):
        return NONE
    last = int(rows[np.argmax(trace.slices.ts[rows])])
    return NONE if _is_programs(trace, last) else last


def _is_programs(trace: Trace, row: int) -> bool:
    return _in_a_step(trace, row) or _in_an_op(trace, row) or _launches_follow(trace, row) or _called(trace, row)


def _in_a_step(trace: Trace, row: int) -> bool:
    return bool(trace.in_steps(trace.slices.ts[[row]]).any())


def _in_an_op(trace: Trace, row: int) -> bool:
    around = trace.slices.category[trace.ancestors(row)]
    return bool(np.isin(around, (Category.CPU_OP, Category.ANNOTATION)).any())


def _launches_follow(trace: Trace, row: int) -> bool:
    calls = trace.device_calls
    return bool((trace.slices.ts[calls[calls != NONE]] > trace.slices.ts[row]).any())


def _called(trace: Trace, row: int) -> bool:
    """Return whether Python frames show that the program made the call: frames exist, and none is the profiler's."""
    s, rows = trace.slices, [row]
    (names,) = frames_around(trace, s.track[rows], s.ts[rows], s.end[rows])
    return any("synchronize" in name for name in names) and not any("profiler" in name for name in names)


OWN = frozenset({"Activity Buffer Request", "Buffer Flush", "Instrumentation", "Resource", "UVM Activity Init"})
"""Rows of work that isn't done without a profiler (CUpti_ActivityOverheadKind; kineto's cupti_strings.cpp). The others
are the driver's work: it compiles, loads what is used for the first time, or its queue is full."""
MOSTLY = 0.5
"""Least share of a row that a call must cover to be the call that the row lies in."""


def is_profilers_own(name: str) -> bool:
    """Return whether an `overhead` row of this name is the profiler's work rather than the driver's."""
    return name in OWN


@once
def profilers_own(trace: Trace) -> tuple[ThreadInterval, ...]:
    """Return where the profiler worked on host threads, in time order and without overlap on a thread."""
    rows = trace.where(is_profilers_own, Category.OVERHEAD)
    if not len(rows):
        return ()
    held: dict[int, list[tuple[int, int]]] = {}
    for track, begin, end in _placed(trace, rows):
        held.setdefault(track, []).append((begin, end))
    covers = {track: cover_of(intervals) for track, intervals in held.items()}
    placed = [
        ThreadInterval(track, begin, end)
        for track, cover in covers.items()
        for begin, end in zip(cover.starts.tolist(), cover.ends.tolist(), strict=True)
    ]
    return tuple(sorted(placed, key=lambda interval: (interval.begin, interval.track)))


def profilers_own_within(trace: Trace, intervals: Iterable[Interval]) -> list[int]:
    """Return how long the profiler blocked the steps' thread in each of these intervals, ns."""
    main = _steps_track(trace)
    own = [(begin, end) for track, begin, end in profilers_own(trace) if track == main]
    cover, listed = cover_of(own) if own else None, list(intervals)
    return [_covered_ns(cover, one) for one in listed] if cover else [0] * len(listed)


def _covered_ns(cover: Cover, interval: Interval) -> int:
    overlap = np.minimum(cover.ends, interval.end) - np.maximum(cover.starts, interval.begin)
    return int(overlap[overlap > 0].sum())


def _placed(trace: Trace, rows: Int64) -> Iterator[ThreadInterval]:
    """Yield the thread and time of each of these rows; rows that blocked no thread are left out."""
    s, main = trace.slices, _steps_track(trace)
    calls = np.flatnonzero(trace.is_category(*CALLS))
    hosts, overlaps, quiet = set(distinct(s.track[calls]).tolist()), Overlaps(trace, calls), _Quiet(trace, main)
    for row in rows.tolist():
        track, begin, end = s.track.item(row), s.ts.item(row), s.end.item(row)
        if track not in hosts:
            call, covered = overlaps.longest(begin, end)
            track = s.track.item(call) if covered > MOSTLY * (end - begin) else NONE
            if track == NONE and quiet.during(begin, end):
                track = main
        if track != NONE:
            yield ThreadInterval(track, begin, end)


class Overlaps:
    """Finds which of some rows overlaps a time the longest."""

    def __init__(self, trace: Trace, rows: Int64) -> None:
        s = trace.slices
        self._rows = rows[np.argsort(s.ts[rows], kind="stable")]
        self._ts, self._end = s.ts[self._rows], s.end[self._rows]
        self._latest = np.maximum.accumulate(self._end)
        """Latest end of each row and those before it."""

    def longest(self, begin: int, end: int) -> tuple[int, int]:
        """Return a row and how long it overlaps, ns; (NONE, 0) if none does."""
        near = slice(int(self._latest.searchsorted(begin, side="right")), int(self._ts.searchsorted(end)))
        overlap = np.minimum(self._end[near], end) - np.maximum(self._ts[near], begin)
        if not len(overlap) or overlap.max() <= 0:
            return NONE, 0
        return int(self._rows[near][overlap.argmax()]), int(overlap.max())


class _Quiet:
    """Tells when nothing begins or ends on a thread."""

    def __init__(self, trace: Trace, track: int) -> None:
        s, rows = trace.slices, trace.track_rows(track) if track != NONE else slice(0, 0)
        host = trace.is_category(*HOST)[rows]
        self._is_thread = track != NONE
        self._times = s.ts[rows][host], np.sort(s.end[rows][host])

    def during(self, begin: int, end: int) -> bool:
        bounds = ((times.searchsorted(begin, side="right"), times.searchsorted(end)) for times in self._times)
        return self._is_thread and all(first >= behind for first, behind in bounds)


def _steps_track(trace: Trace) -> int:
    """Return the track that runs the steps, or launches the most where none are marked; NONE without one."""
    if trace.main_steps:
        return trace.main_steps[0].track
    calls = trace.device_calls
    tracks = trace.slices.track[calls[calls != NONE]]
    return int(np.bincount(tracks).argmax()) if len(tracks) else NONE
