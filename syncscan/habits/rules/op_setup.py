"""Yield a habit for each op whose long calls take a notable part of the steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from msgspec.structs import replace

from syncscan.habits.context import Context
from syncscan.model.arrays import Int64
from syncscan.model.duration import duration
from syncscan.model.habit import Change, Habit
from syncscan.model.interval import ThreadInterval, union
from syncscan.model.trace import NONE, Category

LONG_NS = 1_000_000
"""Host time of an op itself from which on it does more than dispatch. In 52 recordings, only cold starts, ops with many
launches and single calls (up to 2.7 ms, pauses of the system) take longer."""
PER_LAUNCH_NS = 500_000
"""Least such time for each of its own launches: ops that launch hundreds of kernels take as long to prepare them."""
ONCE_NS = 20_000_000
"""A single call this long isn't a pause of the system either."""
PART = 0.05
"""Least part of the step's time for one op to be reported."""
GAP_NS = 100_000
"""Shorter pieces of an op's time between what it calls are its usual work."""


def find(context: Context) -> Iterable[Habit]:
    trace = context.trace
    rows = _long(context)
    names = trace.slices.name[rows]
    for name in sorted(set(names.tolist())):
        calls = rows[names == name]
        if len(calls) > 1 or trace.slices.dur.item(calls.item(0)) >= ONCE_NS:
            yield from _habit(context, trace.strings[name], calls)


def _habit(context: Context, op: str, calls: Int64) -> Iterator[Habit]:
    intervals = [interval for row in calls.tolist() for interval in _pieces(context, row)]
    took = sum(end - begin for _, begin, end in intervals)
    took_us = took / context.count / 1e3
    if took_us < PART * context.period_us:
        return
    every = len(context.rows(Category.CPU_OP, op.__eq__, main=False))
    title = f"{op} sets something up in {len(calls)} of its {every} calls"
    evidence = [
        f"{len(calls)} of {every} calls of {op} take {duration(took / len(calls) / 1e3)} each on the host, besides "
        f"what they launch: {duration(took_us)} per step"
    ]
    change = Change(host=tuple(intervals), unstretched=True)
    yield replace(context.habit("op-setup", calls.tolist(), took_us, evidence, [change]), title=title)


def _long(context: Context) -> Int64:
    """Return the rows of the steps' ops that launch something themselves, little for the time that they take."""
    trace, s = context.trace, context.trace.slices
    rows, _ = trace.rows_of(Category.CPU_OP)
    rows = rows[(s.dur[rows] >= LONG_NS) & context.inside(s.ts[rows])]
    rows = rows[trace.called(rows, lambda name: name.startswith("aten::"))]
    if not len(rows):
        return rows
    inside = np.flatnonzero(np.isin(s.parent, rows))
    itself = s.dur.astype(np.int64)[rows]
    places = np.searchsorted(rows, s.parent[inside])
    np.subtract.at(itself, places, s.dur[inside])
    launching = s.parent[context.launch_calls]
    launches = np.bincount(
        np.searchsorted(rows, launching[np.isin(launching, rows) & (launching != NONE)]), minlength=len(rows)
    )
    long: Int64 = rows[(launches > 0) & (itself >= np.maximum(LONG_NS, PER_LAUNCH_NS * launches))]
    return long


def _pieces(context: Context, row: int) -> Iterator[ThreadInterval]:
    """Yield the long pieces of an op's time in nothing that it calls."""
    s = context.trace.slices
    track = context.trace.track_rows(s.track.item(row))
    last = track.start + int(
        np.searchsorted(s.ts[track], s.end.item(row))
    )  # what it calls lies behind it on its thread
    inside = row + 1 + np.flatnonzero(s.parent[row + 1 : last] == row)
    starts, ends = union(s.ts[inside], s.end[inside])
    begins = [s.ts.item(row), *ends.tolist()]
    for begin, end in zip(begins, [*starts.tolist(), s.end.item(row)], strict=True):
        if end - begin >= GAP_NS:
            yield ThreadInterval(s.track.item(row), begin, end)
