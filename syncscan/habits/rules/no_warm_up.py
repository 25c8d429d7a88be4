"""Yield the habit for a first step much longer than the others, with more one-time calls."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from syncscan.habits.context import Context
from syncscan.model.arrays import median
from syncscan.model.duration import duration
from syncscan.model.habit import Habit
from syncscan.model.runtime_calls import comes_first
from syncscan.model.trace import Category
from syncscan.rules.pages import advice_of

FACTOR, MORE = 3.0, 3


def find(context: Context) -> Iterable[Habit]:
    steps = context.trace.steps
    if len(steps) < 2:
        return
    lengths = np.array([step.end - step.ts for step in steps], np.float64)
    usual = median(lengths[1:])
    if usual <= 0 or lengths[0] < FACTOR * usual:  # steps of no length occur in damaged traces
        return
    s = context.trace.slices
    calling = (Category.RUNTIME, Category.DRIVER)
    rows = [row for category in calling for row in context.rows(category, comes_first, main=False)]
    starts = np.sort(s.ts[rows])
    calls = [int(np.subtract(*np.searchsorted(starts, [step.end, step.ts]))) for step in steps]
    if calls[0] < MORE * max(1, *calls[1:]):
        return
    yield context.habit(
        advice_of("no-warm-up"),
        [],
        None,
        [
            f"the first step takes {duration(lengths[0] / 1e3)}, the others {duration(usual / 1e3)}",
            f"it makes {calls[0]} one-time calls (memory, kernels, handles), the others at most {max(calls[1:])}",
            f"the mean of all is {lengths.mean() / usual:.1f} times the others' median",
        ],
    )
