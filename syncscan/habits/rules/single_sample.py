"""A time that rests on a single sample."""

from __future__ import annotations

from collections.abc import Iterable

from syncscan.habits.look import Look
from syncscan.habits.regions import timed_regions
from syncscan.model.habit import Advice, Area, Habit

ADVICE = Advice(
    rule="single-sample",
    area=Area.TIMING,
    title="One sample was timed",
    why="Clocks, caches and neighbours move each time by some per cent: one sample can't tell by how many.",
    fix="Time many repetitions and report median and spread. `syncscan time` takes 100 and more.",
    when_fine="For an order of magnitude, or when only one step was recorded of many that were timed.",
)


def find(look: Look) -> Iterable[Habit]:
    """Exactly one timed region in the whole trace."""
    regions = timed_regions(look)
    if len(regions) != 1:
        return
    region = regions[0]
    yield look.habit(
        ADVICE,
        [region.sync],
        None,
        [f"one region of {(region.end - region.begin) / 1e6:.2f} ms is timed in this trace, and no second one"],
    )
