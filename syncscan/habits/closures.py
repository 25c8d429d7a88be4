"""From slices around `Optimizer.step` to those that hold the optimizer alone, and no training step as a closure."""

from __future__ import annotations

import numpy as np

from syncscan.habits.context import Context
from syncscan.model.names import is_backward
from syncscan.model.trace import Category


def without_closures(context: Context, rows: list[int]) -> list[int]:
    """Those of these slices of optimizers in which neither a backward pass runs nor another thread launches.

    Under Lightning all of a training step runs inside of `Optimizer.step`.
    """
    s, trace, calls = context.trace.slices, context.trace, context.launch_calls
    issued, track = s.ts[calls], s.track[calls]
    backward = np.sort(s.ts[np.flatnonzero(trace.is_category(Category.CPU_OP) & trace.named(is_backward))])

    def alone(row: int) -> bool:
        within = s.ts.item(row), s.end.item(row)
        first, last = np.searchsorted(issued, within).tolist()
        begun, over = np.searchsorted(backward, within).tolist()
        return bool(begun == over and (track[first:last] == s.track[row]).all())

    return [row for row in rows if alone(row)]
