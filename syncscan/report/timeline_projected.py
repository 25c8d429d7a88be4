"""Build the steps that the timeline draws twice: as recorded, and replayed without some syncs or in another state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from syncscan.model.analysis import Analysis
from syncscan.model.arrays import Int64
from syncscan.model.finding import Severity
from syncscan.model.projection import Schedule
from syncscan.model.states import EAGER, ProjectedState, States
from syncscan.model.trace import Trace
from syncscan.report.phrases import real
from syncscan.report.shown_names import shown
from syncscan.report.states import COMPILED, has_syncs
from syncscan.report.timeline_intervals import home_step, step_name
from syncscan.report.timeline_lanes import DrawnNames, LaneGroup, pack, stacked
from syncscan.report.units import duration, percent

MAX_ALONE = 8
"""Findings that are removed one at a time, besides those of remedies."""
MAX_REPLAYED = 60_000
"""Most slices of all replayed steps together; the step without any sync goes first."""
DIFFERS = 0.02
"""A drawn step that takes a part of its recorded time which differs by more from the mean step's is said to do so."""


class ProjectedStep(msgspec.Struct, frozen=True, eq=False):
    """A step without some findings, launched as it is or another way."""

    findings: tuple[int, ...]
    """Indices of the removed findings."""
    name: str
    """The difference from the recorded step, in words that follow the step's name: `without both syncs`."""
    schedule: Schedule
    untold: str
    """Sentences on what such a replay leaves uncertain and what isn't drawn; empty for none."""
    launches: tuple[str, ...] = ("",)
    """Ways to launch of the projected states that this step is; empty text for the step that is only without syncs."""


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
    """Return the places of those of a schedule's rows that are still done; what a compile fuses away lasts no time."""
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


# states of the step


def with_states(analysis: Analysis, drawn: Sequence[ProjectedStep]) -> list[ProjectedStep]:
    """Return these steps, and behind them the states that none of them is, in the order of their table.

    A state with more device work than the page can still hold is left out.
    """
    steps, left = list(drawn), MAX_REPLAYED - sum(len(step.schedule.rows) for step in drawn)
    if analysis.states is None or not analysis.replayable:
        return steps
    for state in _drawable(analysis, analysis.states):
        step = _step(analysis, analysis.states, state)
        if step is None:
            continue
        place = next((n for n, other in enumerate(steps) if _alike(other, step)), None)
        if place is not None:
            steps[place] = replace(steps[place], launches=(*steps[place].launches, state.launches))
        elif (count := len(remaining(analysis.trace, step.schedule))) <= left:
            left -= count
            steps.append(step)
    return steps


def removed_in(analysis: Analysis, state: ProjectedState) -> tuple[int, ...]:
    """Return the numbers of the findings that a state is without: the program's, or of the pair those that it needs."""
    states = analysis.states
    if states is None or not state.removed:
        return ()
    if state not in states.each:
        return tuple(n for n, f in enumerate(analysis.findings) if f.id in states.breaking)
    return tuple(n for n, f in enumerate(analysis.findings) if not f.intended)


def _drawable(analysis: Analysis, states: States) -> Iterator[ProjectedState]:
    """Yield the states of the table, and the pair where that keeps syncs which break no graph."""
    yield from states.each
    if states.pair is not None and states.pair not in states.each:
        yield states.pair


def _step(analysis: Analysis, states: States, state: ProjectedState) -> ProjectedStep | None:
    step, removed = home_step(analysis), removed_in(analysis, state)
    selectors = [f"id:{analysis.findings[number].id}" for number in removed]
    plan = analysis.schedule(*selectors, at=step.ts if step else None, launches=state.launches)
    if plan is None:
        return None
    untold = " ".join(_state_untold(analysis, states, state, plan))
    return ProjectedStep(removed, _state_name(states, state), plan, untold, (state.launches,))


def _alike(step: ProjectedStep, other: ProjectedStep) -> bool:
    """Return whether two steps are without the same syncs, and drawn alike."""
    a, b = step.schedule, other.schedule
    columns = ((a.rows, b.rows), (a.start, b.start), (a.dur, b.dur))
    alike = a.replayed_end == b.replayed_end and all(np.array_equal(x, y) for x, y in columns)
    return alike and step.findings == other.findings


def _state_name(states: States, state: ProjectedState) -> str:
    """Return a state in words that follow a step's name: `with its syncs removed, compiled`."""
    how = COMPILED[state.launches]
    if not has_syncs(states):
        return how
    if state.launches == EAGER:
        return "without its syncs and what only they needed"
    if not state.removed:
        return f"with its syncs, {how}"
    return f"with {'its' if state in states.each else 'only its graph-breaking'} syncs removed, {how}"


def _state_untold(analysis: Analysis, states: States, state: ProjectedState, plan: Schedule) -> Iterator[str]:
    """Yield what the drawn step doesn't show of a state, and how it differs from the mean step, in sentences."""
    undrawn = len(plan.rows) - len(remaining(analysis.trace, plan))
    if undrawn and state.launches == EAGER:
        yield f"Device work that only the syncs needed isn't drawn: {undrawn:,} of {len(plan.rows):,} pieces."
    elif undrawn:
        needed = ", or that only the syncs needed," if state.removed else ""
        yield (
            f"Kernels keep their recorded names; those that a compile fuses into others{needed} aren't drawn:"
            f" {undrawn:,} of {len(plan.rows):,}."
        )
    if states.eager_frames and not state.removed:
        yield f"The syncs break its graph in a loop, so that part stays eager{_at_the_end(plan)}."
    drawn, mean = (plan.replayed_end - plan.begin) / (plan.end - plan.begin), state.us / states.baseline_us
    if abs(drawn - mean) > DIFFERS:
        yield f"It takes {percent(drawn, 1)} of the time that this step took, the mean step {percent(mean, 1)}."


def _at_the_end(plan: Schedule) -> str:
    if not plan.unplaced:
        return ""
    lasts = duration(plan.unplaced / 1e3)
    return f"; what a compile then costs, {lasts}, is drawn at the step's end, since where it falls isn't known"


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
        "launches": list(step.launches),
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
