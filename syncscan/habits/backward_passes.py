"""From a Context to its backward passes: which parameters' gradients each adds to, and how many there are."""

from __future__ import annotations

import numpy as np

from syncscan.habits.context import Context
from syncscan.model.arrays import Int64
from syncscan.model.names import is_gradient
from syncscan.model.trace import Category


def backward_passes(context: Context) -> list[Int64]:
    """The rows that add to a parameter's gradient, by backward pass, in time order.

    Between two passes the steps' thread runs ops of its own; during one it waits for autograd's. Passes that run on the
    steps' own thread, as on a CPU, aren't told apart, and left out.
    """
    s, trace = context.trace.slices, context.trace
    ops = trace.is_category(Category.CPU_OP)
    own = np.isin(s.track, [step.track for step in trace.steps])
    gradients = np.flatnonzero(ops & ~own & trace.named(is_gradient))
    gradients = gradients[np.argsort(s.ts[gradients], kind="stable")]
    if not len(gradients):
        return []
    forward = np.sort(s.ts[np.flatnonzero(ops & own)])
    cuts = np.flatnonzero(np.diff(np.searchsorted(forward, s.ts[gradients]))) + 1
    return np.split(gradients, cuts)


def parameters(context: Context) -> int:
    """How many parameters the program trains: as many as its fullest backward pass adds to; 0 without one."""
    return max((len(mine) for mine in backward_passes(context)), default=0)
