"""What the timing rules ask: which intervals of a step were timed with events, and read back behind a synchronise."""

from __future__ import annotations

import msgspec
import numpy as np

from syncscan.habits.context import Context
from syncscan.model.arrays import Int64
from syncscan.model.interval import ThreadInterval
from syncscan.model.runtime_calls import is_event_query, is_event_record, is_synchronize
from syncscan.model.trace import NONE, Category

_SOON_NS = 300_000


class EventTiming(msgspec.Struct, frozen=True):
    """An interval of a host thread that is timed: from one event's record to the next one's, and the synchronise."""

    track: int
    begin: int
    end: int
    sync: int


def event_timings(context: Context) -> list[EventTiming]:
    """Two records with device work between, a synchronise of the program's own, then two queries: `elapsed_time`.

    `elapsed_time` asks both events whether they are done; nothing else asks two in a row right behind a synchronise.
    """
    asked = context.rows(Category.RUNTIME, lambda n: is_event_record(n) or is_synchronize(n) or is_event_query(n))
    rows, found = np.array(asked, np.int64), []
    records = np.flatnonzero(context.trace.called(rows, is_event_record))
    for k in _asked_twice(context, rows).tolist():
        before = records[: int(np.searchsorted(records, k, side="right"))][-2:]
        timing = _event_timing(context, rows[before].tolist(), asked[k]) if _own(context, asked[k]) else None
        if timing is not None:
            found.append(timing)
    return found


def _own(context: Context, sync: int) -> bool:
    """Whether a synchronise is the program's own, not an op's."""
    return context.paths.outermost_op(sync) == NONE


def _asked_twice(context: Context, rows: Int64) -> Int64:
    """The places of the synchronises right behind which come two queries."""
    s, trace = context.trace.slices, context.trace
    synchronises, queries = trace.called(rows, is_synchronize), trace.called(rows, is_event_query)
    begins, soon = s.ts[rows], s.end[rows] + _SOON_NS
    return np.flatnonzero(
        synchronises[:-2] & queries[1:-1] & queries[2:] & (begins[1:-1] < soon[:-2]) & (begins[2:] < soon[:-2])
    )


def _event_timing(context: Context, records: list[int], sync: int) -> EventTiming | None:
    s = context.trace.slices
    if len(records) < 2 or s.track[records[0]] != s.track[records[1]]:
        return None
    track, begin, end = int(s.track[sync]), int(s.ts[records[0]]), int(s.ts[records[1]])
    step = context.step_at(s.ts.item(sync))
    if (
        step is None
        or begin < step.begin
        or not len(context.launched(ThreadInterval(track, begin, end), any_thread=True))
    ):
        return None
    # DDP's own timers are read a step later, behind other work: that times no repetition.
    behind = context.launched(ThreadInterval(track, end, int(s.ts[sync])), any_thread=True)
    return None if len(behind) else EventTiming(track, begin, end, sync)
