"""Which ops lie inside others that do work, and what came before and after a call on its thread."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan.detect import calls_of, neighbours
from syncscan.detect.neighbours import Neighbours
from syncscan.facts.paths import Paths
from syncscan.model.slice_names import is_step, is_wrapper
from syncscan.model.trace import CALLS, NONE, Category, Trace
from tests.builder import TraceBuilder

NAMES = ("aten::mm", "aten::add", "MulBackward0")
nested = st.recursive(
    st.sampled_from(("call", "launch")),
    lambda inside: st.tuples(st.sampled_from(("op", "scope", "step")), st.integers(0, 2), st.lists(inside, max_size=4)),
    max_leaves=12,
)


def written(t: TraceBuilder, parts: list[object], at: int) -> int:
    """Write ops, scopes, steps and calls as they are nested, from this time on; when they end."""
    for part in parts:
        if isinstance(part, tuple):
            kind, number, inside = part
            place = len(t.events)
            end = written(t, inside, at + 1)
            make = {"op": t.op, "scope": t.scope}.get(kind)
            within, t.events[place:] = t.events[place:], []
            if make is None:
                t.step(at, end, number)
            else:
                make(NAMES[number] if kind == "op" else f"scope {number}", at, end)
            t.events += within
            at = end + 1
        else:
            t.call("cudaLaunchKernel" if part == "launch" else "cudaStreamSynchronize", at, at + 1)
            at += 2
    return at


def outermost(trace: Trace, row: int) -> bool:
    """Whether no op that does work lies around a row."""
    s = trace.slices
    around = trace.ancestors(row)
    return not any(s.category[r] == Category.CPU_OP and not is_wrapper(trace.name(r)) for r in around)


@given(st.lists(nested, min_size=1, max_size=8), st.lists(nested, max_size=4), st.sampled_from((2, 64)))
def test_before_and_after_are_what_a_look_at_every_slice_says(
    main: list[object], other: list[object], most: int
) -> None:
    """On each thread by itself, what is around left out, from a step's begin on and up to the next one's."""
    t = TraceBuilder()
    written(t, main, 0)
    with t.thread("worker"):
        written(t, other, 0)
    trace = t.trace()
    s = trace.slices
    calls = np.flatnonzero(trace.is_category(*CALLS))
    paths = [trace.cached(Paths).to(row) for row in s.parent[calls].tolist()]
    ranges = trace.is_category(Category.CPU_OP, Category.ANNOTATION)
    with pytest.MonkeyPatch.context() as m:
        m.setattr(neighbours, "_MOST", most)
        near = Neighbours(trace)
        begins = np.array(
            [s.ts[row if path.worker == NONE else path.worker] for row, path in zip(calls, paths, strict=True)]
        )
        tracks, ends = s.track[calls].tolist(), s.end[calls].tolist()
        before = list(map(near.before, tracks, begins.tolist(), paths))
        after = list(map(near.after, tracks, ends))
    for call, path, begin, earlier, later in zip(calls.tolist(), paths, begins, before, after, strict=True):
        own_rows = [r for r in range(*trace.track_rows(int(s.track[call])).indices(len(s))) if outermost(trace, r)]
        came = [r for r in own_rows if ranges[r] and s.ts[r] < begin][-most:]
        marks = [k for k, r in enumerate(came) if r in path.rows and is_step(trace.name(r))]
        came = came[marks[-1] + 1 if marks else 0 :]
        assert earlier == tuple(trace.name(r) for r in came if r not in path.rows)
        comes = [trace.name(r) for r in own_rows if s.ts[r] >= s.end[call]][:most]
        until = next((k for k, name in enumerate(comes) if is_step(name)), len(comes))
        assert later == tuple(comes[:until])


def test_a_scope_around_a_call_is_none_of_what_came_before_it() -> None:
    """So calls with the same before them get the same names, in a scope or not."""
    t = TraceBuilder()
    for k, at in enumerate((1000, 2000, 3000)):
        with t.step(at, at + 900, k):
            t.op("aten::mm", at + 10, at + 20)
            if k == 2:
                t.scope("loss", at + 30, at + 800)
            t.call("cudaStreamSynchronize", at + 40, at + 500)
    assert [call.before for call in calls_of(t.trace())] == [("aten::mm",)] * 3
