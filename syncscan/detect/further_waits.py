"""Find the waits that no blocking call shows: synchronization rows alone, loops of queries, launches that all wait."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from syncscan.detect.awaited import DEVICE_ROW, AwaitedWork, place_of
from syncscan.model.arrays import Bool, Int64, distinct
from syncscan.model.finding import Awaited, Place, SyncPoint
from syncscan.model.runtime_calls import api_name, is_event_query, is_graph_launch, is_query
from syncscan.model.trace import CALLS, HOST, NONE, Category, Trace

_DEVICE_SIDE = re.compile(r"Stream Wait Event|GPU_BARRIER\w*")
"""Names of synchronization rows that make the device wait, not the host."""
_NO_PROCESS = "-1"
"""The pid of Intel's synchronization rows; their tid is the host thread's."""


def unseen_waits(trace: Trace, awaited: AwaitedWork, seen: Sequence[SyncPoint]) -> Iterator[SyncPoint]:
    """Yield one wait per synchronization row that none of the calls `seen` covers."""
    rows = trace.where(lambda name: not _DEVICE_SIDE.fullmatch(name), Category.SYNC)
    rows = rows[trace.calls_of(rows) == NONE]
    if not len(rows):  # nearly always
        return
    slices, threads = trace.slices, _HostThreads(trace)
    seen_between = np.array([(call.ts, call.end) for call in seen], np.int64).reshape(-1, 2)
    for row in rows.tolist():
        if _covered(int(slices.ts[row]), int(slices.end[row]), seen_between):
            continue
        track = threads.of(row)
        if track != NONE:
            yield _blocking_call(trace, awaited, row, track)


def _blocking_call(trace: Trace, awaited: AwaitedWork, row: int, track: int) -> SyncPoint:
    slices = trace.slices
    name = trace.name(row)
    device = int(slices.device[row]) if slices.device[row] != NONE else awaited.first_device
    supposed = (device, NONE if name == DEVICE_ROW else int(slices.stream[row]))
    (held_by,) = awaited.of(np.array([row]), np.array([row]), [name], [track], [supposed])
    around = _around(trace, track, int(slices.ts[row]), int(slices.end[row]))
    return bare_wait(trace, [row], name, track, around, place_of(held_by, name, supposed), held_by)


def _covered(begin: int, end: int, calls: Int64) -> bool:
    """Return whether one of these (begin, end) covers half of this interval, as the same wait on another clock does."""
    overlap = np.minimum(calls[:, 1], end) - np.maximum(calls[:, 0], begin)
    return bool((2 * overlap >= max(end - begin, 1)).any())


class _HostThreads:
    """Finds the host thread of a synchronization row, which lies on the device's track."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def of(self, row: int) -> int:
        """Return the track of the thread that waited, or NONE.

        On Intel the row's tid names it; else it is the thread that called the runtime last, if it was quiet meanwhile.
        """
        own = self._trace.tracks[int(self._trace.slices.track[row])]
        if own.pid == _NO_PROCESS:
            return next((track for track in self._calls if self._trace.tracks[track].tid == own.tid), NONE)
        last = {track: self._last_call(track, row) for track in self._calls}
        waited = max(last, key=last.__getitem__, default=NONE)
        return waited if last.get(waited, NONE) != NONE else NONE

    @cached_property
    def _calls(self) -> dict[int, Int64]:
        trace = self._trace
        host = trace.is_category(*HOST)
        calls = trace.is_category(*CALLS)
        rows_of = {track: trace.track_rows(track) for track in distinct(trace.slices.track[host]).tolist()}
        return {track: trace.slices.ts[rows][calls[rows]] for track, rows in rows_of.items()}

    def _last_call(self, track: int, row: int) -> int:
        """Return when a thread last called the runtime before this row; NONE if never, or if it calls meanwhile."""
        slices, calls = self._trace.slices, self._calls[track]
        at = int(np.searchsorted(calls, slices.ts[row], side="right"))
        quiet = at == len(calls) or calls[at] >= slices.end[row]
        return int(calls[at - 1]) if at and quiet else NONE


def _around(trace: Trace, track: int, begin: int, end: int) -> int:
    """Return the innermost op or annotation of a thread around this interval, or NONE."""
    slices, rows = trace.slices, trace.track_rows(track)
    last_begun = rows.start + int(np.searchsorted(slices.ts[rows], begin, side="right")) - 1
    if last_begun < rows.start:
        return NONE
    outwards = (last_begun, *trace.ancestors(last_begun)[::-1])
    return next((row for row in outwards if slices.end[row] >= end and _holds_others(trace, row)), NONE)


def _holds_others(trace: Trace, row: int) -> bool:
    return trace.slices.category[row] in (Category.CPU_OP, Category.ANNOTATION)


def bare_wait(
    trace: Trace,
    rows: Sequence[int],
    api: str,
    track: int,
    around: int,
    place: Place,
    awaited: Awaited | None,
    launches: int = 0,
) -> SyncPoint:
    """Return the wait that these rows, first to last, show by themselves, without a copy."""
    return SyncPoint(
        calls=tuple(rows),
        api=api,
        apis=(api,),
        ts=int(trace.slices.ts[rows[0]]),
        end=int(trace.slices.end[rows[-1]]),
        track=track,
        around=around,
        device=place[0],
        stream=place[1],
        waited=True,
        awaited=awaited,
        copy="",
        bytes=NONE,
        launches=launches,
    )


FEWEST = 3
"""Fewest queries in a loop: a program that queries twice, and does something else meanwhile, doesn't wait."""
SHORTEST_NS = 100_000
"""Shortest loop: the allocator's bursts, the longest series of queries without a wait, take a few µs."""


def polls(trace: Trace, awaited: AwaitedWork) -> Iterator[SyncPoint]:
    """Yield one wait for each loop of queries in which a launching thread waited for its device."""
    slices, launching = trace.slices, _launching(trace)
    for loop in _loops(trace):
        rows: list[int] = loop.tolist()
        first, last, name = rows[0], rows[-1], trace.name(rows[0])
        track = slices.track.item(first)
        if track not in launching or slices.end.item(last) - slices.ts.item(first) < SHORTEST_NS:
            continue
        work = awaited.of_poll(rows, track, is_event_query(name))
        if work is not None:
            yield bare_wait(trace, rows, api_name(name), track, slices.parent.item(first), work.streams[0], work)


def _loops(trace: Trace) -> Iterator[Int64]:
    """Yield the rows of each loop: consecutive queries in no op with nothing in between."""
    rows = trace.where(is_query, *CALLS)
    if len(rows) < FEWEST:
        return
    slices, around = trace.slices, trace.slices.parent[rows]
    rows = rows[(around == NONE) | (slices.category[around] != Category.CPU_OP)]
    alike = np.diff(rows) == 1  # anything else on the thread has a row in between
    for column in (slices.track, slices.parent, slices.name):
        alike &= column[rows[1:]] == column[rows[:-1]]
    for loop in np.split(rows, np.flatnonzero(~alike) + 1):
        if len(loop) >= FEWEST:
            yield loop


def _launching(trace: Trace) -> set[int]:
    calls = trace.device_calls
    return set(distinct(trace.slices.track[calls[calls != NONE]]).tolist())


_SHARE = 0.9
"""Least share of launches that outlast their kernel with launch blocking.

In 50 ordinary recordings it is at most 0.6 %, with launch blocking 100 % in all 30.

(H200, torch 2.11, sample_traces, benchmarks/detect_thresholds.py.)
"""
_SOME = 5
"""Part of the kernels, one in this many, that nearly always suffices to show that launches don't block."""
_ENOUGH = 20
"""Fewer kernels prove nothing, as tiny ones can end within their own launch."""
_TOLERANCE_NS = 1_000
"""Accuracy of traces from before torch 2.4, which have whole µs."""


def blocking_launch(trace: Trace) -> tuple[int, int] | None:
    """Return the longest launch of a trace with blocking launches, and their number; None for an ordinary trace.

    With `CUDA_LAUNCH_BLOCKING=1`, each launch call returns after its kernel has ended; asynchronous launches return
    long before. So at least 90 % of the kernels must end before their launch does.
    """
    kernels, _ = trace.rows_of(Category.KERNEL)
    _, blocked = _launches(trace, kernels[: len(kernels) // _SOME])
    if len(kernels) and (len(kernels) - np.count_nonzero(~blocked)) / len(kernels) < _SHARE:  # whatever the others do
        return None
    launch, blocked = _launches(trace, kernels)
    if len(launch) < _ENOUGH or blocked.mean() < _SHARE:
        return None
    waiting = launch[blocked]
    return int(waiting[np.argmax(trace.slices.dur[waiting])]), int(blocked.sum())


def _launches(trace: Trace, kernel: Int64) -> tuple[Int64, Bool]:
    """Return the launches of these kernels, without graph launches, and which of them returned after their kernel."""
    slices, launch = trace.slices, trace.calls_of(kernel)
    single = (launch != NONE) & ~trace.called(launch, is_graph_launch)
    kernel, launch = kernel[single], launch[single]
    after_call = slices.ts[kernel] >= slices.ts[launch] - _TOLERANCE_NS
    return launch, after_call & (slices.end[kernel] <= slices.end[launch] + _TOLERANCE_NS)
