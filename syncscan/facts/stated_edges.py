"""From what a trace states about events to edges: which record call each wait for an event means.

Two sources state it: `cuda_sync` rows (off by default) by correlation, and capture's own table, which torch's callbacks
filled at every event record, wait and synchronise (`torch.cuda._gpu_trace`), by time and thread.
"""

from __future__ import annotations

import numpy as np

from syncscan.model.arrays import Int64
from syncscan.model.capture import CaptureTable, EventCall, Handle
from syncscan.model.trace import NONE, Trace

_NEAR_NS = 100_000
"""How long after its callback a call may begin: the callback takes 1 to 3 µs, a preempted thread longer."""
_EARLY_NS = 2_000
"""A callback fires just before its call: so much earlier or later, clocks allowed for, the call is looked for."""


def stated_edges(trace: Trace, records: Int64, waits: Int64) -> dict[int, int]:
    """Row of a call that waits for an event → row of the record that it waits for.

    Args:
        trace: any trace; without either source there are none.
        records: rows of the event record calls.
        waits: rows of the calls that wait for an event, of streams and of hosts.
    """
    return {**_from_callbacks(trace, records, waits), **_from_sync_rows(trace, records, waits)}


def _from_sync_rows(trace: Trace, records: Int64, waits: Int64) -> dict[int, int]:
    rows = trace.sync_rows_of(waits)
    told = rows != NONE
    meant = trace.calls_with(trace.slices.awaits[rows[told]])
    known = set(records.tolist())
    return {row: record for row, record in zip(waits[told].tolist(), meant.tolist(), strict=True) if record in known}


def _from_callbacks(trace: Trace, records: Int64, waits: Int64) -> dict[int, int]:
    last: dict[Handle, int] = {}
    found = {}
    for seen in sorted(_seen(trace.info.capture), key=lambda seen: seen.epoch_ns):
        recorded = seen.kind == "record"
        row = _call_at(trace, records if recorded else waits, seen.epoch_ns - trace.info.base_ns, seen.tid)
        if row is None:
            continue
        if recorded:
            last[seen.event] = row
        elif seen.event in last:
            found[row] = last[seen.event]
    return found


def _seen(table: CaptureTable) -> list[EventCall]:
    """What the callbacks saw of events: records, waits of streams, and synchronises of hosts."""
    waited = (s for s in table.lines.syncs if s.kind == "event" and s.handle)
    return [*table.events, *(EventCall(s.epoch_ns, s.tid, s.kind, s.handle) for s in waited)]


def _call_at(trace: Trace, calls: Int64, ts: int, tid: int) -> int | None:
    """The first of these calls on this thread from just before `ts` on; None if it isn't near."""
    s = trace.slices
    at = int(np.searchsorted(s.ts[calls], ts - _EARLY_NS))
    for row in calls[at:].tolist():
        if s.ts[row] > ts + _NEAR_NS:
            return None
        if trace.tracks[s.track[row]].tid == str(tid):
            return int(row)
    return None
