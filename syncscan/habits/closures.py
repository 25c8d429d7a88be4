"""Select the slices around `Optimizer.step` that contain only the optimizer, without a training step as its closure."""

from __future__ import annotations

import numpy as np

from syncscan.habits.context import Context
from syncscan.model.arrays import Bool, Int64, distinct
from syncscan.model.slice_names import is_backward
from syncscan.model.trace import Category


def without_closures(context: Context, rows: list[int]) -> list[int]:
    """Return those of these optimizer slices in which no backward pass runs and no other thread launches.

    Under Lightning, a whole training step runs inside of `Optimizer.step`.
    """
    if not rows:
        return []
    s, calls, slices = context.trace.slices, context.launch_calls, np.array(rows, np.int64)
    alone = _none_in(context.kept(_backward), s.ts[slices], s.end[slices])
    for track in distinct(s.track[slices]).tolist():
        own, elsewhere = s.track[slices] == track, s.ts[calls[s.track[calls] != track]]
        alone[own] &= _none_in(elsewhere, s.ts[slices[own]], s.end[slices[own]])
    selected: list[int] = slices[alone].tolist()
    return selected


def _backward(context: Context) -> Int64:
    """Return when each op of a backward pass begins, ascending."""
    s, trace = context.trace.slices, context.trace
    return np.sort(s.ts[trace.where(is_backward, Category.CPU_OP)])


def _none_in(times: Int64, begins: Int64, ends: Int64) -> Bool:
    """Return which of these intervals contain none of the ascending times."""
    none: Bool = np.searchsorted(times, begins) == np.searchsorted(times, ends)
    return none
