"""Measure how long a trace's steps wait for the DataLoader's workers."""

from __future__ import annotations

from syncscan.model.slice_names import is_loader_with_workers
from syncscan.model.trace import Category, Trace


def loader_waits(trace: Trace) -> float:
    """Return the mean time per step in `__next__` of a DataLoader with workers on the step's thread, ns."""
    if not trace.steps:
        return 0.0
    s, steps = trace.slices, trace.main_steps
    rows = trace.where(is_loader_with_workers, Category.ANNOTATION, Category.CPU_OP)
    rows = rows[(s.track[rows] == steps[0].track) & (s.ts[rows] >= steps[0].ts) & (s.ts[rows] < steps[-1].end)]
    return float(s.dur[rows].sum()) / len(steps)
