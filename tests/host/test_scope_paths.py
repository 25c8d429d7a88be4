"""Which scopes an op lies in, and which forward op made a backward one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from syncscan.facts.paths import Paths
from syncscan.host.scope_paths import ScopePaths, _made_by
from syncscan.model.arrays import Int64
from syncscan.model.trace import NONE, Category
from tests.builder import MAIN, TraceBuilder

ops = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 12), st.sampled_from((0, 1, 2, 500)), st.booleans()), max_size=25
)


@dataclass
class Columns:
    """What of the slices is asked for."""

    track: Int64
    ts: Int64
    sequence: Int64


@given(ops, st.integers(0, 1))
def test_the_last_forward_op_of_that_number_to_begin_before_made_it(
    drawn: list[tuple[int, int, int, bool]], threads: int
) -> None:
    """On one thread or two, where numbers come again, and where none or far more lies between them."""
    rows = sorted((track * threads, ts, number, forward) for track, ts, number, forward in drawn)
    columns = Columns(*(np.array([row[k] for row in rows], np.int64) for k in range(3)))
    forward = [k for k, row in enumerate(rows) if row[3]]
    backward = [k for k, row in enumerate(rows) if not row[3]]
    expected = []
    for asked in backward:
        _, at, number, _ = rows[asked]
        # Of those that begin at the same time it is the one that stands last before it.
        made = [(rows[k][1], k) for k in forward if rows[k][2] == number and (rows[k][1], k) < (at, asked)]
        expected.append(max(made)[1] if made else NONE)
    found = _made_by(columns, np.array(forward, np.int64), np.array(backward, np.int64))  # type: ignore[arg-type]
    assert found.tolist() == expected


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
    expected = [trace.kept(Paths).to(row).names.scopes for row in ops.tolist()]
    tops = np.flatnonzero((s.parent == NONE) & (s.category != int(Category.OVERHEAD)))
    if len(tops):
        assert [paths.names(path) for path in paths.of(ops, tops).tolist()] == expected
