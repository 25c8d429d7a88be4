"""The op before a copy built the copied tensor; all copies are attributed at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from syncscan.habits.rules.inputs import _ops_before
from syncscan.model.trace import NONE, Category
from tests.builder import MAIN, TraceBuilder

slices = st.lists(
    st.tuples(st.sampled_from(("op", "scope", "call")), st.integers(0, 1), st.integers(0, 20), st.integers(1, 20)),
    min_size=1,
    max_size=15,
)


@given(slices, st.integers(1, 5))
def test_the_op_before_is_the_last_with_the_same_parent(drawn: list[tuple[str, int, int, int]], near: int) -> None:
    """On its own thread, whatever else lies between, and in no more rows than are looked at."""
    t = TraceBuilder()
    for kind, thread, begin, lasts in drawn:
        with t.thread("worker", MAIN + thread):
            {"op": t.op, "scope": t.scope, "call": t.call}[kind](kind, begin, begin + lasts)
    trace = t.trace()
    s, (ops, _) = trace.slices, trace.rows_of(Category.CPU_OP)
    rows, expected = ops.tolist(), []
    for row in rows:
        before = [other for other in rows if row - near <= other < row and s.track[other] == s.track[row]]
        expected.append(max((other for other in before if s.parent[other] == s.parent[row]), default=NONE))
    assert _ops_before(trace, ops, near).tolist() == expected
