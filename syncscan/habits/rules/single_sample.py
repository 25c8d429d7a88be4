"""A time that rests on a single sample."""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.context import Context
from syncscan.habits.event_timing import event_timings
from syncscan.model.habit import Advice, Area, Habit

ADVICE = Advice(
    rule="single-sample",
    area=Area.TIMING,
    title="One sample was timed",
    why="Clocks, caches and neighbours move each time by some per cent: one sample can't tell by how many.",
    fix="Time many repetitions and report median and spread. `syncscan time` takes 100 and more.",
    when_fine="For an order of magnitude, or when only one step was recorded of many that were timed.",
)


def find(context: Context) -> Iterable[Habit]:
    """Exactly one timed part in the whole trace."""
    timings = event_timings(context)
    if len(timings) != 1:
        return
    timing = timings[0]
    yield context.habit(
        ADVICE,
        [timing.sync],
        None,
        [f"one part of {(timing.end - timing.begin) / 1e6:.2f} ms is timed in this trace, and no second one"],
    )
