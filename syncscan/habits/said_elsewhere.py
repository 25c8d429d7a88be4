"""Find the parts of steps whose launches belong to another habit, so that none counts twice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from syncscan.habits.context import Context
from syncscan.habits.looping_optimizer import find_looping_optimizer
from syncscan.habits.parameter_loops import parameter_loops
from syncscan.habits.zeroed_gradients import zeroed_gradients
from syncscan.model.arrays import Bool, Int64
from syncscan.model.interval import ThreadInterval


def said_elsewhere(context: Context) -> list[ThreadInterval]:
    """Return where an optimizer or another loop visits the parameters, and where gradients are zero-filled."""
    looping, zeroed = context.kept(find_looping_optimizer), context.kept(zeroed_gradients)
    scopes = [*(looping.steps if looping else ()), *(zeroed.scopes if zeroed else ())]
    loops = [interval for loop in context.kept(parameter_loops) for interval in loop.intervals]
    return sorted([*(context.interval(row) for row in scopes), *loops], key=lambda interval: interval.begin)


def begun_in(context: Context, rows: Int64, intervals: Sequence[ThreadInterval]) -> Bool:
    """Return which of these host slices begin in one of these intervals of their thread."""
    s, inside = context.trace.slices, np.zeros(len(rows), np.bool_)
    for track, begin, end in intervals:
        inside |= (s.track[rows] == track) & (s.ts[rows] >= begin) & (s.ts[rows] < end)
    return inside
