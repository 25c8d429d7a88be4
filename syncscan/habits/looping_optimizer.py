"""Find optimizer steps that launch small kernels for one parameter after the other."""

from __future__ import annotations

import msgspec
import numpy as np

from syncscan.habits.closures import without_closures
from syncscan.habits.context import Context
from syncscan.model.slice_names import is_optimizer_step
from syncscan.model.trace import Category

MANY, SMALL_NS, BATCHED = 200, 20_000, 0.1
"""Least launches per step, longest mean kernel, and largest share of batched kernels of such an optimizer."""


class LoopingOptimizer(msgspec.Struct, frozen=True, kw_only=True):
    """Optimizer steps whose launches certainly bound the step, and that aren't batched."""

    steps: list[int]
    """Rows of torch's scopes around `Optimizer.step`, in time order."""
    kernels: float
    """Number of kernels per step."""
    mean_ns: float
    """Mean length of a kernel, ns."""
    took_us: float
    """Host time per step; a lower bound if the step's own time is unknown."""


def find_looping_optimizer(context: Context) -> LoopingOptimizer | None:
    """Return the optimizer steps of a trace if they consist of many small kernels that delay the step; else None."""
    s, trace = context.trace.slices, context.trace
    steps = context.outermost(context.rows(Category.ANNOTATION, is_optimizer_step, main=False))
    rows = without_closures(context, steps)
    work = np.concatenate([np.zeros(0, np.int64), *context.launched_by(rows)])
    if len(work) < MANY * context.count:
        return None
    together = trace.called(work, lambda n: "multi_tensor_apply" in n or "fused" in n.lower())
    mean_ns = float(s.dur[work].mean())
    if np.count_nonzero(together) > BATCHED * len(work) or mean_ns > SMALL_NS:
        return None
    took = context.length_us(rows) * context.host_scale
    if not context.launch_bound:
        took = context.least_us(len(work) / context.count, mean_ns, [context.interval(row) for row in rows])
    if took < 5 * context.notable_us:
        return None
    return LoopingOptimizer(steps=rows, kernels=len(work) / context.count, mean_ns=mean_ns, took_us=took)
