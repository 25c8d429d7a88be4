"""Build the steps that the timeline draws twice: as recorded, and replayed without some syncs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from syncscan.model.analysis import Analysis
from syncscan.model.arrays import Int64
from syncscan.model.finding import Severity
from syncscan.model.projection import Schedule
from syncscan.model.trace import Trace
from syncscan.report.phrases import real
from syncscan.report.shown_names import shown
from syncscan.report.timeline_intervals import home_step, step_name
from syncscan.report.timeline_lanes import DrawnNames, LaneGroup, pack, stacked

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
        for number, lane in enumerate(group.lanes):
            if lane.kind == "stream":
                own = np.isin(work, lane.rows)
                packed = _columns(work[own], start[own], dur[own], book, origin)
            elif lane.kind == "scopes" and group.track in plan.tracks:
                packed = _outermost(trace, plan, lane.rows, book, origin)
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
