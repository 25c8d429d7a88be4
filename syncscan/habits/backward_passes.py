"""Find backward passes, the parameters whose gradients each adds to, and the number of parameters."""

from __future__ import annotations

import numpy as np

from syncscan.habits.context import Context
from syncscan.model.arrays import Int64
from syncscan.model.slice_names import is_gradient
from syncscan.model.trace import Category


def backward_passes(context: Context) -> list[Int64]:
    """Return the rows that add to a parameter's gradient, per backward pass, in time order.

    Between two passes the steps' thread runs ops of its own; during one it waits for autograd's. Passes on the steps'
    own thread, as on a CPU, can't be distinguished and are left out.
    """
    s, trace, own = context.trace.slices, context.trace, sorted({step.track for step in context.trace.steps})
    gradients = trace.where(is_gradient, Category.CPU_OP)
    gradients = gradients[~np.isin(s.track[gradients], own)]
    gradients = gradients[np.argsort(s.ts[gradients], kind="stable")]
    if not len(gradients):
        return []
    ops = [s.ts[run][s.category[run] == int(Category.CPU_OP)] for run in map(trace.track_rows, own)]
    forward = np.sort(np.concatenate(ops)) if len(ops) > 1 else ops[0]
    cuts = np.flatnonzero(np.diff(np.searchsorted(forward, s.ts[gradients]))) + 1
    return np.split(gradients, cuts)


def parameters(context: Context) -> int:
    """Return how many parameters the program trains: as many as its fullest backward pass adds to; 0 without one."""
    return max((len(rows) for rows in context.kept(backward_passes)), default=0)
