"""Yield the habit for copies to the device between the two events of timed intervals."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from syncscan.habits.context import Context
from syncscan.habits.event_timing import event_timings
from syncscan.habits.input_copies import pageable_copies, pinned_copies
from syncscan.model.duration import duration
from syncscan.model.habit import Habit
from syncscan.model.interval import Cover, Interval, union_of
from syncscan.rules.pages import advice_of


def find(context: Context) -> Iterable[Habit]:
    timed = union_of([Interval(timing.begin, timing.end) for timing in context.kept(event_timings)])
    if not timed:
        return
    copies = [*context.kept(pageable_copies), *context.kept(pinned_copies)]
    begins, ends = (np.array(column, np.int64) for column in zip(*timed, strict=True))
    inside = Cover(begins, ends).holds(context.trace.slices.ts[[c.call for c in copies]])
    timed_copies = list(itertools.compress(copies, inside.tolist()))
    held = (
        context.length_us(c.call for c in timed_copies) + sum(c.waited_ns for c in timed_copies) / context.count / 1e3
    )
    took = max(held, context.length_us(c.row for c in timed_copies))
    if not timed_copies or took < context.notable_us:
        return
    size = sum(c.size for c in timed_copies) / context.count / 1e6
    yield context.habit(
        advice_of("timed-transfer"),
        [c.call for c in timed_copies],
        None,
        [f"{size:.2f} MB per step are copied inside the timed interval: {duration(took)} of it"],
    )
