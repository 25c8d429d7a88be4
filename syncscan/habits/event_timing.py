"""What the timing rules ask: which intervals of a step were timed with events, and read back behind a synchronise."""

from __future__ import annotations

from dataclasses import dataclass

from syncscan.habits.context import Context
from syncscan.model.interval import ThreadInterval
from syncscan.model.runtime_calls import is_event_query, is_event_record, is_synchronise
from syncscan.model.trace import NONE, Category

_SOON_NS = 300_000


@dataclass(frozen=True, slots=True)
class EventTiming:
    """An interval of a host thread that is timed: from one event's record to the next one's, and the synchronise."""

    track: int
    begin: int
    end: int
    sync: int


def event_timings(context: Context) -> list[EventTiming]:
    """Two records with device work between, a synchronise of the program's own, then two queries: `elapsed_time`.

    `elapsed_time` asks both events whether they are done; nothing else asks two in a row right behind a synchronise.
    """
    trace = context.trace
    rows = context.rows(Category.RUNTIME, lambda n: is_event_record(n) or is_synchronise(n) or is_event_query(n))
    names = [trace.name(r) for r in rows]
    found, records = [], list[int]()
    for k, row in enumerate(rows):
        if is_event_record(names[k]):
            records = [*records[-1:], row]
        if not is_synchronise(names[k]) or not _asked_twice(context, rows, names, k) or not _own(context, row):
            continue
        timing = _event_timing(context, records, row)
        if timing is not None:
            found.append(timing)
    return found


def _own(context: Context, sync: int) -> bool:
    """Whether a synchronise is the program's own, not an op's."""
    return context.trace.outermost_op(sync) == NONE


def _asked_twice(context: Context, rows: list[int], names: list[str], k: int) -> bool:
    s = context.trace.slices
    after = [(r, n) for r, n in zip(rows[k + 1 : k + 3], names[k + 1 : k + 3], strict=True)]
    return (
        len(after) == 2
        and all(is_event_query(n) for _, n in after)
        and all(int(s.ts[r]) - int(s.end[rows[k]]) < _SOON_NS for r, _ in after)
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
