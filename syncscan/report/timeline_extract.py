"""Choose what the timeline shows: intervals, and steps that it draws twice, as recorded and without syncs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from syncscan.model.analysis import Analysis
from syncscan.model.arrays import Bool, Int64
from syncscan.model.finding import Finding, Severity, SyncPoint
from syncscan.model.interval import Interval, cover_of
from syncscan.model.projection import Schedule, StepState
from syncscan.model.trace import Step, Trace
from syncscan.report.phrases import real
from syncscan.report.printable import shown
from syncscan.report.timeline_lanes import DrawnNames, LaneGroup, pack, stacked

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


def recorded_step(analysis: Analysis) -> StepState | None:
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
        tried = cover_of([*chosen, interval]).intervals
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


MAX_ALONE = 8
"""Findings that are removed one at a time, besides those of remedies."""
MAX_REPLAYED = 60_000
"""Most slices of all replayed steps together; the step without any sync goes first."""


class ProjectedStep(msgspec.Struct, frozen=True, eq=False):
    """A step without some findings."""

    findings: tuple[int, ...]
    """Indices of the removed findings."""
    name: str
    """The difference from the recorded step, in words that follow the step's name: `without both syncs`."""
    schedule: Schedule
    untold: str
    """Sentences on what such a replay leaves uncertain and what isn't drawn; empty for none."""


def steps_without(analysis: Analysis) -> list[ProjectedStep]:
    """Return the step without any sync, then without those of each remedy, then without each of the first findings.

    Each is of the step around the costliest sync point that is taken out. Empty where nothing can be replayed, where no
    gain was projected, or where steps launch more than a report can hold.
    """
    if not analysis.replayable or analysis.step.recoverable_us is None or not real(analysis.findings):
        return []
    steps: list[ProjectedStep] = []
    left = MAX_REPLAYED
    for removed in _choices(analysis):
        schedule = _schedule(analysis, removed, everything=not steps)
        if schedule is None or len(schedule.rows) > left:
            break
        left -= len(schedule.rows)
        name = f"without {_name(analysis, removed, not steps)}"
        steps.append(ProjectedStep(removed, name, schedule, _untold(analysis, removed)))
    return steps


def remaining(trace: Trace, plan: Schedule) -> Int64:
    """Return the places of those of a schedule's rows that are still done."""
    return np.flatnonzero((plan.dur > 0) | (trace.slices.dur[plan.rows] == 0))


def _untold(analysis: Analysis, removed: Sequence[int]) -> str:
    untold = (analysis.findings[number].untold for number in removed)
    return shown(next(filter(None, untold), ""), 300)


def why_none(analysis: Analysis, steps: Sequence[ProjectedStep]) -> str:
    if steps:
        return ""
    if not real(analysis.findings):
        return "No syncs to remove, so there is no projection."
    if not analysis.replayable:
        return "This trace can't be replayed, so there is no projection."
    if analysis.step.recoverable_us is None:
        return "No gain could be projected from this trace."
    return "A step has too many launches to draw its projection."


def _choices(analysis: Analysis) -> list[tuple[int, ...]]:
    numbers = {f.id: number for number, f in enumerate(analysis.findings)}
    selectable = [number for number, f in enumerate(analysis.findings) if f.severity is not Severity.INFO]
    remedies = [tuple(sorted(numbers[id] for id in r.findings)) for r in analysis.remedies if r.findings]
    alone = [(number,) for number in selectable[:MAX_ALONE]]
    return list(dict.fromkeys([tuple(selectable), *remedies, *alone]))


def _schedule(analysis: Analysis, removed: Sequence[int], everything: bool) -> Schedule | None:
    if everything:
        step = home_step(analysis)
        return analysis.schedule("all", at=step.ts if step else None)
    findings = [analysis.findings[number] for number in removed]
    return analysis.schedule(*(f"id:{f.id}" for f in findings), at=findings[0].costliest.ts)


def _name(analysis: Analysis, removed: Sequence[int], everything: bool) -> str:
    if everything and len(removed) > 1:
        return "both syncs" if len(removed) == 2 else f"all {len(removed)} syncs"
    title = shown(analysis.findings[removed[0]].title, 70)
    return f"“{title}”" + (f" and {len(removed) - 1} more" if len(removed) > 1 else "")


# columns


def packed_steps(
    steps: Sequence[ProjectedStep], trace: Trace, groups: Sequence[LaneGroup], book: DrawnNames, origin: int
) -> list[dict[str, Any]]:
    """Return the data that the timeline draws of each step; times are ns since `origin`."""
    return [_pack(step, trace, groups, book, origin) for step in steps]


def _pack(
    step: ProjectedStep, trace: Trace, groups: Sequence[LaneGroup], book: DrawnNames, origin: int
) -> dict[str, Any]:
    plan = step.schedule
    return {
        "name": step.name,
        "findings": list(step.findings),
        "untold": step.untold,
        "of": step_name(trace, plan),
        "start": plan.begin - origin,
        "end": plan.replayed_end - origin,
        "recorded": plan.end - origin,
        "lanes": list(_lanes(plan, trace, groups, book, origin)),
    }


def _lanes(
    plan: Schedule, trace: Trace, groups: Sequence[LaneGroup], book: DrawnNames, origin: int
) -> Iterator[dict[str, Any]]:
    stays = remaining(trace, plan)
    work, start, dur = plan.rows[stays], plan.start[stays], plan.dur[stays]
    for at, group in enumerate(groups):
        for number, (kind, _, rows) in enumerate(group.lanes):
            if kind == "stream":
                own = np.isin(work, rows)
                packed = _columns(work[own], start[own], dur[own], book, origin)
            elif kind == "scopes" and group.track in plan.tracks:
                packed = _outermost(trace, plan, rows, book, origin)
            else:
                continue
            yield {"group": at, "lane": number, **packed}


def _outermost(trace: Trace, plan: Schedule, rows: Int64, book: DrawnNames, origin: int) -> dict[str, str]:
    s = trace.slices
    rows = rows[(s.ts[rows] >= plan.begin) & (s.end[rows] <= plan.end)]
    rows = rows[stacked(s.ts[rows], s.end[rows]) == 0]
    start, end = plan.host(s.ts[rows]), plan.host(s.end[rows])
    return _columns(rows, start, end - start, book, origin)


def _columns(rows: Int64, start: Int64, dur: Int64, book: DrawnNames, origin: int) -> dict[str, str]:
    order = np.argsort(start, kind="stable")
    return {
        "start": pack(np.maximum(start[order] - origin, 0), delta=True),
        "dur": pack(np.maximum(dur[order], 0)),
        "name": pack(book.numbers(rows[order])),
    }
