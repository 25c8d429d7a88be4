"""Choose which projected states of the step the timeline draws: with its syncs or without, as it is or compiled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from syncscan.model.analysis import Analysis
from syncscan.model.schedule import Schedule
from syncscan.model.states import EAGER, ProjectedState, States
from syncscan.report.states import COMPILED, has_syncs
from syncscan.report.timeline_intervals import home_step
from syncscan.report.timeline_without import MAX_REPLAYED, ProjectedStep, remaining
from syncscan.report.units import duration, percent

DIFFERS = 0.02
"""A drawn step that takes a part of its recorded time which differs by more from the mean step's is said to do so."""


def with_states(analysis: Analysis, drawn: Sequence[ProjectedStep]) -> list[ProjectedStep]:
    """Return these steps, and behind them the states that none of them is, in the order of their table.

    A state with more device work than the page can still hold is left out.

    Args:
        drawn: the steps without some syncs that are drawn already.
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
    return tuple(n for n, f in enumerate(analysis.findings) if not f.diagnosis.intended)


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
    untold = " ".join(_untold(analysis, states, state, plan))
    return ProjectedStep(removed, _name(states, state), plan, untold, (state.launches,))


def _alike(step: ProjectedStep, other: ProjectedStep) -> bool:
    """Return whether two steps are without the same syncs, and drawn alike."""
    a, b = step.schedule, other.schedule
    columns = ((a.rows, b.rows), (a.start, b.start), (a.dur, b.dur))
    alike = a.replayed_end == b.replayed_end and all(np.array_equal(x, y) for x, y in columns)
    return alike and step.findings == other.findings


# words


def _name(states: States, state: ProjectedState) -> str:
    """Return a state in words that follow a step's name: `with its syncs removed, compiled`."""
    how = COMPILED[state.launches]
    if not has_syncs(states):
        return how
    if state.launches == EAGER:
        return "without its syncs and what only they needed"
    if not state.removed:
        return f"with its syncs, {how}"
    return f"with {'its' if state in states.each else 'only its graph-breaking'} syncs removed, {how}"


def _untold(analysis: Analysis, states: States, state: ProjectedState, plan: Schedule) -> Iterator[str]:
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
