"""Linking orders a trace's rows, nests them, and finds its steps."""

from __future__ import annotations

import pytest

from syncscan.model.trace import DEEPEST
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


@pytest.mark.parametrize("depth", [DEEPEST + 1, DEEPEST + 2, 2000])
def test_slices_nested_too_deep_are_counted(depth: int) -> None:
    """The deepest that counts has DEEPEST around it; of a deeper one the innermost count."""
    t = TraceBuilder()
    for i in range(depth):
        t.op(f"op{i}", i, 3 * depth - i)
    trace = t.trace()
    row = len(trace.slices) - 1
    assert [trace.name(r) for r in trace.ancestors(row)] == [f"op{i}" for i in range(depth - 1)][-DEEPEST:]
    deep = depth - 1 - DEEPEST
    assert (f"{deep:,} slice" in " ".join(trace.info.warnings)) == (deep > 0)
