"""Choose the intervals that the report's timeline shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from syncscan.model.analysis import Analysis
from syncscan.model.arrays import Bool, Int64
from syncscan.model.finding import Finding, SyncPoint
from syncscan.model.interval import Interval, union_of
from syncscan.model.projection import Schedule, StepAfter
from syncscan.model.trace import Step, Trace

MAX_WHOLE_STEPS, MAX_KEPT = 60, 30
"""Most whole steps, and most sync points per finding, that are kept of a big trace."""
_PAD_NS = (500_000, 20_000_000)
"""Least and most time that is kept before and after a sync point of a big trace, ns."""


def home(analysis: Analysis, extent: Interval, plan: Schedule | None = None) -> Interval:
    """Return the interval shown first: the step of the worst sync point, else a typical step, else everything.

    A replayed step, if there is one, goes first: it is what is drawn twice.
    """
    step = home_step(analysis)
    if step is None:
        return extent
    start, end = (plan.begin, max(plan.end, plan.replayed_end)) if plan else (step.ts, step.end)
    pad = max(1, (end - start) // 50)
    return Interval(max(extent.begin, start - pad), min(extent.end, end + pad))


def home_step(analysis: Analysis) -> Step | None:
    """Return the step of the worst sync point, else one of the usual length; None without steps."""
    steps = analysis.trace.steps
    if not steps:
        return None
    for f in analysis.findings:
        at = f.costliest.ts
        around = next((s for s in steps if s.ts <= at < s.end), None)
        if around:
            return around
    return sorted(steps, key=lambda s: s.end - s.ts)[len(steps) // 2]


def step_name(trace: Trace, plan: Schedule) -> str:
    """Return what a replayed step is called: `step 6`; the whole trace without steps."""
    marked = next((s for s in trace.steps if s.ts == plan.begin), None)
    return f"step {marked.number}" if marked else "the whole trace"


def recorded_step(analysis: Analysis) -> StepAfter | None:
    """Return the step of the costliest wait with nothing changed; None where no step can be replayed."""
    if analysis.projector is None or not analysis.replayable or analysis.trace.info.capture.pretended:
        return None
    step = home_step(analysis)
    now = analysis.projector.after((), (), at=step.ts if step else None)
    return now if now and now.schedule and now.schedule.end > now.schedule.begin else None


def choose(analysis: Analysis, drawn: Int64, budget: int, extent: Interval, first: Interval) -> list[Interval]:
    """Return the intervals whose slices are kept, disjoint and ascending.

    Everything, if it fits. Else the first view, then the surroundings of the findings' costliest sync points, then
    whole steps, those nearest to the first view before the others, for as long as the budget lasts.
    """
    if len(drawn) <= budget:
        return [extent]
    starts = np.sort(analysis.trace.slices.ts[drawn])
    chosen: list[Interval] = []
    for interval in _wanted(analysis, extent, first):
        tried = union_of([*chosen, interval])
        if _count(starts, tried) <= budget:
            chosen = tried
    return chosen or [_first(starts, budget, extent)]


def _wanted(analysis: Analysis, extent: Interval, first: Interval) -> list[Interval]:
    steps = sorted(analysis.trace.steps, key=lambda s: abs(s.ts - first.begin))[:MAX_WHOLE_STEPS]
    return [
        *([first] if steps else []),
        *(_around(o, extent) for o in _costly(analysis.findings)),
        *(Interval(s.ts, s.end) for s in steps),
    ]


def _costly(findings: Sequence[Finding]) -> list[SyncPoint]:
    """Return the costliest sync point of each finding, then the second of each, and so on."""
    ranked = [sorted(f.occurrences, key=lambda o: -(o.wait_ns + o.bubble_ns)) for f in findings]
    return [r[k] for k in range(MAX_KEPT) for r in ranked if k < len(r)][: 4 * MAX_KEPT]


def _around(o: SyncPoint, whole: Interval) -> Interval:
    length = o.end - o.ts + o.bubble_ns
    pad = min(max(length // 2, _PAD_NS[0]), _PAD_NS[1])
    return Interval(max(whole.begin, o.ts - pad), min(whole.end, o.ts + length + pad))


def _count(starts: Int64, intervals: list[Interval]) -> int:
    return sum(int(np.diff(np.searchsorted(starts, w))[0]) for w in intervals)


def _first(starts: Int64, budget: int, whole: Interval) -> Interval:
    return Interval(whole.begin, int(starts[min(budget, len(starts) - 1)]))


def inside(trace: Trace, rows: Int64, intervals: list[Interval]) -> Bool:
    s = trace.slices
    start, end = s.ts[rows], s.end[rows]
    inside = np.zeros(len(rows), np.bool_)
    for a, b in intervals:
        inside |= (start < b) & (end >= a)
    return inside
