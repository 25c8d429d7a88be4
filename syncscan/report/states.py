"""Describe a step's states, with and without syncs and launches, as a sentence and a table."""

from __future__ import annotations

from collections.abc import Iterator

from syncscan.model.analysis import Analysis
from syncscan.model.states import (
    COMPILE,
    EAGER,
    REDUCE_OVERHEAD,
    ObstacleKind,
    ProjectedState,
    States,
    in_words,
    standing,
)
from syncscan.report.blocks import Block, Fold, Grid, GridColumn
from syncscan.report.phrases import measurable
from syncscan.report.units import percent, time_and_range, within

COMPILED = {
    "eager": "as it is",
    "compile": "compiled",
    REDUCE_OVERHEAD: "compiled (reduce-overhead)",
    "graph": "as one CUDA graph",
}
"""Names of the ways a network launches, in words."""
TITLE = "Syncs and launches together: a step, projected"
LOSES = 0.02
"""A state that takes so much longer than the step as it is, as a part of it, is said to lose."""


def in_the_way(analysis: Analysis, removed: bool) -> str:
    """Return what keeps the network from being compiled or held by CUDA graphs, a sentence; empty without anything.

    Where a pair of changes leads, the syncs are `removed` in it, and what they are in the way of isn't.
    """
    words, of = in_words(standing(analysis.obstacles, removed)), analysis.states
    compiled = of.state(COMPILE, False) if of else None
    if of is None or compiled is None or not any(o.kind is ObstacleKind.SHAPES for o in analysis.obstacles):
        return words
    gain, (low, high) = of.baseline_us - compiled.us, compiled.range_us
    saves = within(gain, (of.baseline_us - high, of.baseline_us - low))
    much = f"saves {saves}" if measurable(gain, of.baseline_us) and gain >= LOSES * of.baseline_us else ""
    return f"{words[:-1]}; `dynamic=True` {much or 'gains nothing here'}."


def blocks(analysis: Analysis) -> Iterator[Block]:
    """Yield the step as it is and its compiled states: how it launches, then what is removed.

    Without its syncs alone it is what the first screen says.
    """
    of = analysis.states
    if of:
        now = ProjectedState(EAGER, False, of.baseline_us, (of.baseline_us, of.baseline_us))
        listed = (now, *(s for s in of.each if s.launches != EAGER))
        columns = (GridColumn("the step"), *(GridColumn(name, right=True) for name in ("takes", "between", "change")))
        yield Fold(TITLE, (Grid(columns, tuple(_row(s, of.baseline_us, has_syncs(of)) for s in listed)),))


def has_syncs(states: States) -> bool:
    """Return whether the step has syncs of the program's own, so that states with and without them differ."""
    return states.state(EAGER, True) is not None


def _row(state: ProjectedState, base: float, syncs: bool) -> tuple[str, str, str, str]:
    removed = ("syncs removed, " if state.removed else "with its syncs, ") if syncs else ""
    takes, between = time_and_range(state.us, state.range_us, base)
    gain = base - state.us
    unchanged = not measurable(abs(gain), base)
    change = "" if unchanged else f"{percent(abs(gain), base)} {'shorter' if gain > 0 else 'longer'}"
    return f"{removed}{COMPILED[state.launches]}", takes, between, change
