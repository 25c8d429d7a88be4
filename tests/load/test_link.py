"""Linking orders a trace's rows, nests them, and finds its steps."""

from __future__ import annotations

from tests.builder import TraceBuilder


def test_a_step_that_was_cut_short_is_no_step() -> None:
    """The step in which a script ended is left out of the steps, unless it is all there is."""
    cut = TraceBuilder(syncscan={"unfinished_step": 4})
    for _ in cut.steps(3, lasts=100):
        pass
    alone = TraceBuilder(syncscan={"unfinished_step": 2})
    for _ in alone.steps(1, lasts=100):
        pass
    assert [[step.number for step in t.trace().steps] for t in (cut, alone)] == [[2, 3], [2]]
