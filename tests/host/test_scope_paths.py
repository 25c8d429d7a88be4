"""Which scopes an op lies in."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from syncscan.facts.paths import Paths
from syncscan.host.scope_paths import ScopePaths
from syncscan.model.trace import NONE, Category
from tests.builder import MAIN, TraceBuilder

slices = st.lists(
    st.tuples(
        st.sampled_from(("op", "op", "scope", "step", "call", "overhead")),
        st.integers(0, 1),
        st.integers(0, 30),
        st.integers(1, 30),
    ),
    min_size=1,
    max_size=20,
)


@given(slices)
def test_an_op_lies_in_the_scopes_that_hold_it(drawn: list[tuple[str, int, int, int]]) -> None:
    """On each of two threads, in ops and calls that lie in scopes and hold some, beside the profiler's own slices."""
    t = TraceBuilder()
    for number, (kind, thread, begin, lasts) in enumerate(drawn):
        with t.thread("worker", MAIN + thread):
            if kind == "overhead":
                t._slice("overhead", "Buffer Flush", MAIN, t.tid, begin, lasts, {})
            elif kind == "step":
                t.step(begin, begin + lasts)
            else:
                {"op": t.op, "scope": t.scope, "call": t.call}[kind](f"{kind}{number % 3}", begin, begin + lasts)
    trace = t.trace()
    s, (ops, _) = trace.slices, trace.rows_of(Category.CPU_OP)
    paths = ScopePaths(trace)
    expected = [trace.cached(Paths).to(row).names.scopes for row in ops.tolist()]
    tops = np.flatnonzero((s.parent == NONE) & (s.category != int(Category.OVERHEAD)))
    if len(tops):
        assert [paths.names(path) for path in paths.of(ops, tops).tolist()] == expected
