"""Which forward op made a backward one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from syncscan.facts.autograd import forward_ops
from syncscan.model.trace import NONE, Category
from tests.builder import MAIN, TraceBuilder

ops = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 12), st.sampled_from((NONE, 0, 1, 2, 500)), st.booleans()), max_size=25
)


@given(ops, st.integers(0, 1))
def test_the_last_forward_op_of_that_number_to_begin_before_made_it(
    drawn: list[tuple[int, int, int, bool]], threads: int
) -> None:
    """On one thread or two, where numbers come again, and where none or far more lies between them."""
    t = TraceBuilder()
    for thread, ts, number, forward in drawn:
        with t.thread("worker", MAIN + thread * threads):
            ids = {} if number == NONE else {"Sequence number": number, "Fwd thread id": 0 if forward else 1}
            t._slice("cpu_op", "aten::mm", MAIN, t.tid, ts, 0, ids)
    trace = t.trace()
    s, (rows, _) = trace.slices, trace.rows_of(Category.CPU_OP)
    each = list(zip(rows.tolist(), s.sequence.tolist(), s.ts.tolist(), (s.fwd_thread <= 0).tolist(), strict=True))
    backward = [row for row, _, _, forward in each if not forward]
    expected = []
    for query in backward:
        built = [(ts, row) for row, number, ts, forward in each if forward and number == s.sequence[query] != NONE]
        expected.append(max([(ts, row) for ts, row in built if ts < s.ts[query]], default=(0, NONE))[1])
    assert forward_ops(trace, np.array(backward, np.int64)).tolist() == expected


def test_of_none_none_is_found() -> None:
    """Also in a trace without ops."""
    t = TraceBuilder()
    t.call("cudaStreamSynchronize", 0, 1)
    assert forward_ops(t.trace(), np.zeros(0, np.int64)).tolist() == []
