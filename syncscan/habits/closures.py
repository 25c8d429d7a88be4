"""From slices around `Optimizer.step` to those that hold the optimizer alone, and no training step as a closure."""

from __future__ import annotations

import numpy as np

from syncscan.habits.context import Context
from syncscan.model.arrays import Bool, Int64, distinct
from syncscan.model.names import is_backward
from syncscan.model.trace import Category


def without_closures(context: Context, rows: list[int]) -> list[int]:
    """Those of these slices of optimizers in which neither a backward pass runs nor another thread launches.

    Under Lightning all of a training step runs inside of `Optimizer.step`.
    """
    if not rows:
        return []
    s, calls, each = context.trace.slices, context.launch_calls, np.array(rows, np.int64)
    alone = _none_in(context.kept(_backward), s.ts[each], s.end[each])
    for track in distinct(s.track[each]).tolist():
        mine, others = s.track[each] == track, s.ts[calls[s.track[calls] != track]]
        alone[mine] &= _none_in(others, s.ts[each[mine]], s.end[each[mine]])
    kept: list[int] = each[alone].tolist()
    return kept


def _backward(context: Context) -> Int64:
    """When each op of a backward pass begins, ascending."""
    s, trace = context.trace.slices, context.trace
    return np.sort(s.ts[trace.where(is_backward, Category.CPU_OP)])


def _none_in(times: Int64, begins: Int64, ends: Int64) -> Bool:
    """In which of these intervals none of the times, which ascend, lies."""
    none: Bool = np.searchsorted(times, begins) == np.searchsorted(times, ends)
    return none
