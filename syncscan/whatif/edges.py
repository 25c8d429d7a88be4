"""From what a trace states about events to edges: which record call each wait for an event means.

Two sources state it: `cuda_sync` rows (off by default) by correlation, and capture's own table, which torch's callbacks
filled at every event record, wait and synchronise (`torch.cuda._gpu_trace`), by time and thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from syncscan.model.trace import NONE, Category, Int64, Trace

_NEAR_NS = 100_000
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
    s = trace.slices
    stated = np.flatnonzero((s.category == Category.SYNC) & (s.awaits != NONE) & (s.correlation != NONE))
    awaited = dict(zip(s.correlation[stated].tolist(), s.awaits[stated].tolist(), strict=True))
    record_of = dict(zip(s.correlation[records].tolist(), records.tolist(), strict=True))
    pairs = ((row, record_of.get(awaited.get(int(s.correlation[row]), NONE))) for row in waits.tolist())
    return {row: record for row, record in pairs if record is not None}


def _from_callbacks(trace: Trace, records: Int64, waits: Int64) -> dict[int, int]:
    own = trace.info.metadata.get("syncscan")
    if not isinstance(own, Mapping):
        return {}
    last: dict[Any, int] = {}
    found = {}
    for at, tid, kind, event in sorted(_seen(own), key=lambda seen: seen[0]):
        row = _call_at(trace, records if kind == "record" else waits, at - trace.info.base_ns, tid)
        if row is None:
            continue
        if kind == "record":
            last[event] = row
        elif event in last:
            found[row] = last[event]
    return found


def _seen(own: Mapping[str, Any]) -> list[tuple[int, int, str, Any]]:
    """What the callbacks saw of events: (epoch ns, thread, `record`, `wait` or `event`, the event's handle)."""
    seen = [(int(e[0]), int(e[1]), str(e[2]), e[3]) for e in _rows(own.get("events"), 4)]
    lines = own.get("lines")
    if isinstance(lines, Mapping) and isinstance(lines.get("columns"), Sequence) and "handle" in lines["columns"]:
        place = list(lines["columns"]).index("handle")
        seen += [
            (int(e[0]), int(e[1]), "event", e[place]) for e in _rows(lines.get("syncs"), place + 1) if e[2] == "event"
        ]
    return seen


def _rows(table: Any, width: int) -> list[Any]:
    return [row for row in table if isinstance(row, Sequence) and len(row) >= width] if isinstance(table, list) else []


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
