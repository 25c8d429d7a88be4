"""A rule's queries of many slices at once equal those of each slice alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from syncscan import api
from syncscan.habits.context import Context
from syncscan.habits.rules.optimizers import without_closures
from syncscan.model.slice_names import is_backward
from syncscan.model.trace import HOST, NONE, Category, Trace
from tests.builder import TraceBuilder

NAMES = ("aten::a", "aten::b", "autograd::engine::evaluate_function: X")


@st.composite
def contexts(draw: st.DrawFn) -> Context:
    """Steps in which ops, scopes and launches nest at random, on two threads."""
    t = TraceBuilder()
    for start in t.steps(draw(st.integers(1, 2)), lasts=80):
        t.launch(at=start, lasts=5)
        _nested(draw, t, start + 2, start + 80, 2)
        with t.thread("pt_autograd_0"):
            _nested(draw, t, start + 2, start + 80, 1)
    trace = t.trace()
    return Context(trace, (), api.analyze_trace(trace).step)


def _nested(draw: st.DrawFn, t: TraceBuilder, begin: float, end: float, depth: int) -> None:
    cuts = sorted(draw(st.lists(st.integers(int(begin), int(end)), max_size=6, unique=True)))
    for a, b in zip(cuts[::2], cuts[1::2], strict=False):
        kind = draw(st.sampled_from(["op", "scope", "launch"]))
        if kind == "launch":
            t.launch(at=a, lasts=3)
            continue
        with t.op(draw(st.sampled_from(NAMES)), a, b) if kind == "op" else t.scope("s", a, b):
            if depth:
                _nested(draw, t, a, b, depth - 1)


def _host_rows(trace: Trace) -> list[int]:
    rows: list[int] = np.flatnonzero(trace.is_category(*HOST)).tolist()
    return rows


@given(contexts())
def test_what_slices_launched_is_looked_up_together(context: Context) -> None:
    """By the thread's own launches, as one interval after the other does."""
    rows = _host_rows(context.trace)
    expected = [context.launched(context.interval(row)).tolist() for row in rows]
    assert [work.tolist() for work in context.launched_by(rows)] == expected


@given(contexts())
def test_a_closure_holds_a_backward_op_or_another_thread_s_launch(context: Context) -> None:
    """Looked for in each slice by itself."""
    trace, s = context.trace, context.trace.slices

    def within(row: int, rows: Any) -> list[int]:
        return [other for other in rows if s.ts[row] <= s.ts[other] < s.end[row]]

    backward = [r for r in _host_rows(trace) if s.category[r] == Category.CPU_OP and is_backward(trace.name(r))]
    rows = _host_rows(trace)
    expected = [
        row
        for row in rows
        if not within(row, backward)
        and all(s.track[call] == s.track[row] for call in within(row, context.launch_calls.tolist()))
    ]
    assert without_closures(context, rows) == expected


def test_what_rules_ask_together_is_answered_once() -> None:
    """However many of them ask."""
    t = TraceBuilder()
    with t.step(0, 100):
        t.launch(at=1, lasts=5)
    trace = t.trace()
    context, requested = Context(trace, (), api.analyze_trace(trace).step), list[Context]()

    def ask(of: Context) -> int:
        requested.append(of)
        return NONE

    assert [context.cached(ask), context.cached(ask), len(requested)] == [NONE, NONE, 1]
