"""Measure how long the loader of a trace without marked steps took before its first step."""

from __future__ import annotations

import numpy as np

from syncscan.facts.period import step_intervals
from syncscan.model.interval import union
from syncscan.model.names import is_loader
from syncscan.model.steps_found import FoundBy
from syncscan.model.trace import HOST, Trace, once


@once
def loader_before(trace: Trace) -> int:
    """Return how long a DataLoader's `__next__` took before the first step, ns; 0 where the steps are marked.

    Without marks a step begins at a launch: what the host does before its first one counts as no step's.
    """
    steps = step_intervals(trace)
    if not steps or trace.steps_found.by not in (FoundBy.NONE, FoundBy.REPETITION):
        return 0
    s, rows, begin = trace.slices, trace.where(is_loader, *HOST), steps[0].begin
    rows = rows[s.ts[rows] < begin]
    if not len(rows):
        return 0
    rows = rows[np.argsort(s.ts[rows], kind="stable")]
    starts, ends = union(s.ts[rows], np.minimum(s.end[rows], begin))
    return int((ends - starts).sum())
