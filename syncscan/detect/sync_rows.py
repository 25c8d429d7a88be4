"""Find waits that only synchronization rows show: those of extensions, and of filtered calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from syncscan.detect.awaited import DEVICE_ROW, AwaitedWork, place_of
from syncscan.detect.blocking_call import BlockingCall, wait_of_row
from syncscan.detect.waits import Waits
from syncscan.model.arrays import Int64, distinct
from syncscan.model.trace import CALLS, HOST, NONE, Category, Trace

_DEVICE_SIDE = re.compile(r"Stream Wait Event|GPU_BARRIER\w*")
"""Names of synchronization rows that make the device wait, not the host."""
_NO_PROCESS = "-1"
"""The pid of Intel's synchronization rows; their tid is the host thread's."""


def unseen_waits(
    trace: Trace, waits: Waits, awaited: AwaitedWork, seen: Sequence[BlockingCall]
) -> Iterator[BlockingCall]:
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
            yield _blocking_call(trace, waits, awaited, row, track)


def _blocking_call(trace: Trace, waits: Waits, awaited: AwaitedWork, row: int, track: int) -> BlockingCall:
    slices = trace.slices
    name = trace.name(row)
    device = int(slices.device[row]) if slices.device[row] != NONE else waits.first_device
    supposed = (device, NONE if name == DEVICE_ROW else int(slices.stream[row]))
    (held_by,) = awaited.of(np.array([row]), np.array([row]), [name], [track], [supposed])
    return wait_of_row(
        trace,
        row,
        api=name,
        track=track,
        around=_around(trace, track, int(slices.ts[row]), int(slices.end[row])),
        place=place_of(held_by, name, supposed),
        awaited=held_by,
    )


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
        """When each host thread called the runtime, ascending, by track."""
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
