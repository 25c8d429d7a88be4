"""Find the records that a call may wait for, and the streams that a record may mark.

If the trace states which record is meant, `stated_edges` has it. Otherwise it is one of the last before the wait, on
a stream on which its thread had launched work.
"""

from __future__ import annotations

from functools import cache, cached_property

import numpy as np

from syncscan.model.arrays import Int32, Int64, grouped
from syncscan.model.capture import CaptureTable, EventCall, Handle
from syncscan.model.runtime_calls import is_event_record, is_event_synchronize, is_stream_wait
from syncscan.model.trace import CALLS, NONE, Trace

_NEAR_NS = 100_000
"""How long after its callback a call may begin: a callback takes 1 to 3 µs, a preempted thread longer."""
_EARLY_NS = 2_000
"""How long before its callback a call may begin, since the clocks differ."""


def stated_edges(trace: Trace, records: Int64, waits: Int64) -> dict[int, int]:
    """Return for the row of each call that waits for an event the row of the record that it waits for."""
    return {**_from_callbacks(trace, records, waits), **_from_sync_rows(trace, records, waits)}


def _from_sync_rows(trace: Trace, records: Int64, waits: Int64) -> dict[int, int]:
    rows = trace.sync_rows_of(waits)
    stated = rows != NONE
    meant = trace.calls_with(trace.slices.awaits[rows[stated]])
    known = set(records.tolist())
    return {row: record for row, record in zip(waits[stated].tolist(), meant.tolist(), strict=True) if record in known}


def _from_callbacks(trace: Trace, records: Int64, waits: Int64) -> dict[int, int]:
    last: dict[Handle, int] = {}
    edges = {}
    for seen in sorted(_seen(trace.info.capture), key=lambda seen: seen.epoch_ns):
        recorded = seen.kind == "record"
        row = _call_at(trace, records if recorded else waits, seen.epoch_ns - trace.info.base_ns, seen.tid)
        if row is None:
            continue
        if recorded:
            last[seen.event] = row
        elif seen.event in last:
            edges[row] = last[seen.event]
    return edges


def _seen(table: CaptureTable) -> list[EventCall]:
    """Return the event calls that the callbacks saw: records, stream waits, and host synchronizes."""
    waited = (s for s in table.lines.syncs if s.kind == "event" and s.handle)
    return [*table.events, *(EventCall(s.epoch_ns, s.tid, s.kind, s.handle) for s in waited)]


def _call_at(trace: Trace, calls: Int64, ts: int, tid: int) -> int | None:
    """Return the first of these calls on this thread from just before `ts` on; None if it isn't near."""
    s = trace.slices
    at = int(np.searchsorted(s.ts[calls], ts - _EARLY_NS))
    for row in calls[at:].tolist():
        if s.ts[row] > ts + _NEAR_NS:
            return None
        if trace.tracks[s.track[row]].tid == str(tid):
            return int(row)
    return None


TRIES = 8
"""Number of candidate records of the waiting thread, nearest first: programs hand over with one or two, and FSDP's rate
limiter keeps two all-gathers in flight."""
LOOK_BACK = 256
"""Number of other threads' records, and of launches before a record, to search; bounds the time."""

_NO_TIMES = np.zeros(0, np.int64)


class EventRecords:
    """Event record calls of a trace, in time order."""

    def __init__(self, trace: Trace) -> None:
        self._slices = trace.slices
        rows = trace.where(is_event_record, *CALLS)
        rows = rows[np.argsort(trace.slices.ts[rows], kind="stable")]
        self._on = {NONE: (rows, trace.slices.ts[rows])}
        """Per thread, and for all (NONE): rows of the records, and when they began."""
        waits = trace.where(lambda name: is_event_synchronize(name) or is_stream_wait(name), *CALLS)
        waits = waits[np.argsort(trace.slices.ts[waits], kind="stable")]
        self.stated = stated_edges(trace, rows, waits)
        """Row of a call that waits for an event → row of the record that it waits for, as stated by the trace."""

    @property
    def none(self) -> bool:
        return not len(self._on[NONE][0])

    def before(self, row: int, most: int = LOOK_BACK, *, track: int = NONE) -> list[int]:
        """Return the rows of the last records before a call, latest first, of one thread or of all."""
        if track not in self._on:
            rows, times = self._on[NONE]
            own = self._slices.track[rows] == track
            self._on[track] = rows[own], times[own]
        records, times = self._on[track]
        count = int(times.searchsorted(self._slices.ts.item(row)))
        latest: list[int] = records[max(0, count - most) : count][::-1].tolist()
        return latest


class UsedStreams:
    def __init__(self, track: Int32 | Int64, issued: Int64, stream: Int32 | Int64) -> None:
        self._track, self._issued, self._stream = track, issued, stream
        self.before = cache(self._before)
        """Return the distinct streams of a thread's last launches before this time (ns), latest first.

        Waits in a row ask for the same times.
        """

    def _before(self, track: int, at: int) -> list[int]:
        issued, firsts, streams = self._on.get(track, (_NO_TIMES, _NO_TIMES, _NO_TIMES))
        behind = int(issued.searchsorted(at))
        first = int(firsts.searchsorted(max(0, behind - LOOK_BACK), side="right")) - 1
        return list(dict.fromkeys(streams[max(first, 0) : int(firsts.searchsorted(behind))][::-1].tolist()))

    @cached_property
    def _on(self) -> dict[int, tuple[Int64, Int64, Int32 | Int64]]:
        """Launches per thread, in time order: their times; and the first of each run on one stream, and that stream."""
        order = np.argsort(self._issued, kind="stable")
        of_thread = {}
        for track, places in grouped(self._track[order]):
            stream = self._stream[order[places]]
            firsts = np.flatnonzero(np.append(True, stream[1:] != stream[:-1]))
            of_thread[track] = self._issued[order[places]], firsts, stream[firsts]
        return of_thread
