"""Find which record call each wait for an event refers to, where a trace states it.

Two sources state it: `cuda_sync` rows (off by default) by correlation, and capture's table, which torch's callbacks
fill at every event record, wait and synchronize (`torch.cuda._gpu_trace`), by time and thread.
"""

from __future__ import annotations

import numpy as np

from syncscan.model.arrays import Int64
from syncscan.model.capture import CaptureTable, EventCall, Handle
from syncscan.model.trace import NONE, Trace

_NEAR_NS = 100_000
"""How long after its callback a call may begin: a callback takes 1 to 3 µs, a preempted thread longer."""
_EARLY_NS = 2_000
"""How long before its callback a call may begin, since the clocks differ."""


def stated_edges(trace: Trace, records: Int64, waits: Int64) -> dict[int, int]:
    """Return for the row of each call that waits for an event the row of the record that it waits for.

    Args:
        trace: any trace; without either source, the result is empty.
        records: rows of the event record calls.
        waits: rows of the calls that wait for an event, of streams and of hosts.
    """
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
