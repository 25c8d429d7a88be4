"""Find what may go along with a removed wait, besides its own op: the host's time, and ops that only it needed.

A fix that reads a value once, or makes a tensor once before the loop, spares what only led up to the op as well: the
Python on its way there, the ops that computed nothing but what is read, and those that made the tensor from a list of
Python's. In ten rebuilt pull requests (H100, torch 2.11, `benchmarks/pull_requests`) a fix gained up to seven times as
much as the wait, its call and its op take, where the host is the limit.

A shape that no longer depends on data needs no gathering and scattering either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from syncscan.facts.network import OutermostOp, ops_of
from syncscan.model.arrays import Int64
from syncscan.model.finding import Finding, Removal
from syncscan.model.habit import Change
from syncscan.model.interval import Interval, ThreadInterval
from syncscan.model.trace import CALLS, NONE, Category, Trace

_READ = (
    "all", "any", "isfinite", "isnan", "isinf", "eq", "ne", "lt", "gt", "le", "ge", "logical_not", "logical_and",
    "logical_or", "bitwise_and", "bitwise_or", "bitwise_not", "max", "min", "amax", "amin", "argmax", "argmin", "norm",
    "linalg_vector_norm", "mean", "sum", "count_nonzero", "bincount", "abs", "add", "sub", "mul", "div", "diff", "pow",
    "sqrt", "square", "select", "slice", "detach", "stack", "unbind", "to",
)  # fmt: skip
FEEDS = {
    Removal.NOTHING: frozenset(f"aten::{name}" for name in _READ),
    Removal.PINNED_COPY: frozenset({"aten::empty", "aten::lift_fresh", "aten::detach", "aten::detach_"}),
    Removal.ASYNC_COPY: frozenset({"aten::empty", "aten::lift_fresh", "aten::detach", "aten::detach_"}),
}
"""Ops right before a wait's own that may go with it: those that make a number to be read, and those that torch calls to
make a tensor from Python's numbers (`torch/csrc/utils/tensor_new.cpp`, `internal_new_from_data`)."""
BEHIND = frozenset({"aten::lift_fresh", "aten::detach_"})
"""Ops that torch calls behind the copy, for the same tensor."""
MOST_OPS = 6
"""The most ops that only lead up to a wait: more aren't its own."""


def around(
    trace: Trace, removals: Sequence[Removal], ops: Sequence[int], own_ns: Sequence[float]
) -> list[Interval | None]:
    """Return what may go along with each wait's op: the time from what leads up to it until what follows for it.

    `ops` has the row of the outermost op around each, or NONE; `own_ns` the host's time in that op without waits, 0 for
    a wait that isn't the first of its op. No pause in between is longer than that.
    """
    if not any(own_ns):
        return [None] * len(ops)
    rows = np.flatnonzero(trace.is_category(Category.CPU_OP, *CALLS))
    neighbors = _Neighbors(trace, rows, frozenset(ops))
    return [
        neighbors.around(op, FEEDS[removal], own) if op != NONE and own and removal in FEEDS else None
        for removal, op, own in zip(removals, ops, own_ns, strict=True)
    ]


class _Neighbors:
    """Finds ops beside others on their thread; `waiting` has the rows of ops that wait themselves."""

    def __init__(self, trace: Trace, rows: Int64, waiting: frozenset[int]) -> None:
        self.trace, self.rows, self.waiting = trace, rows, waiting

    def around(self, op: int, feeds: frozenset[str], longest_ns: float) -> Interval:
        s = self.trace.slices
        end = int(s.end[op]) + self._following(op, longest_ns)
        return Interval(int(s.ts[op]) - self._leading_up(op, feeds, longest_ns), end)

    def _leading_up(self, op: int, feeds: frozenset[str], longest_ns: float) -> int:
        s, name = self.trace.slices, self.trace.name
        first, begin = op, int(s.ts[op])
        for count in range(MOST_OPS + 1):
            before = self._before(first)
            pause = begin - int(s.end[before]) if before != NONE else NONE
            if not 0 <= pause <= longest_ns:
                break
            begin -= pause
            if count == MOST_OPS or before in self.waiting or name(before) not in feeds:
                break
            first, begin = before, int(s.ts[before])
        return int(s.ts[op]) - begin

    def _following(self, op: int, longest_ns: float) -> int:
        s, behind = self.trace.slices, self._behind(op)
        own = behind != NONE and self.trace.name(behind) in BEHIND and s.ts[behind] - s.end[op] <= longest_ns
        return int(s.end[behind] - s.end[op]) if own else 0

    def _before(self, row: int) -> int:
        """Return the outermost op, or the call, that ends before this op begins, on the same thread and in no other."""
        s, at = self.trace.slices, int(np.searchsorted(self.rows, row)) - 1
        if at < 0:
            return NONE
        before = int(self.rows[at])
        above = int(s.parent[before])
        while above != NONE and s.end[above] <= s.ts[row] and s.category[above] == Category.CPU_OP:
            before, above = above, int(s.parent[above])
        return before if s.track[before] == s.track[row] and s.end[before] <= s.ts[row] else NONE

    def _behind(self, op: int) -> int:
        """Return the first op or call that begins behind this op ends, on the same thread."""
        s = self.trace.slices
        at = int(np.searchsorted(self.rows, op)) + 1
        while at < len(self.rows) and s.ts[self.rows[at]] < s.end[op] and s.track[self.rows[at]] == s.track[op]:
            at += 1
        row = int(self.rows[at]) if at < len(self.rows) else NONE
        return row if row != NONE and s.track[row] == s.track[op] else NONE


MOVES = (
    "aten::index", "aten::_index_put", "aten::gather", "aten::scatter", "aten::masked_", "aten::split", "aten::cat",
)  # fmt: skip
"""How ops begin that gather rows by a data-dependent shape, or put them back."""
MOVES_BACK = ("Index", "Gather", "Scatter", "Masked", "Split", "Cat")
"""How the names of their backward nodes begin."""


def spared_ops(trace: Trace, steps: Sequence[Interval], removed: Sequence[Finding]) -> Change:
    """Return the change of a step whose removed syncs take along what only they needed."""
    shapes = any(f.removal is Removal.KERNELS for f in removed)
    reads = sorted(o.ts for f in removed for o in f.occurrences)
    ops = [op for step in steps for op in _gone(ops_of(trace, step), reads, shapes)]
    return Change(
        host=tuple(ThreadInterval(op.track, op.begin, op.end) for op in ops),
        work=tuple((row, 0.0) for op in ops for row in op.work),
    )


def _gone(ops: Sequence[OutermostOp], reads: Sequence[int], shapes: bool) -> Iterator[OutermostOp]:
    places = iter(reads)
    read = next(places, None)
    for at, op in enumerate(ops):
        while read is not None and read < op.begin:
            read = next(places, None)
        if read is not None and read < op.end:
            yield from _feeding(ops[max(0, at - MOST_OPS) : at])
        if shapes and _moves(op):
            yield op


def _feeding(before: Sequence[OutermostOp]) -> Iterator[OutermostOp]:
    """Yield the ops right before a read that make what it reads."""
    for op in reversed(before):
        if op.name not in FEEDS[Removal.NOTHING]:
            return
        yield op


def _moves(op: OutermostOp) -> bool:
    if op.backward:
        return op.name.rpartition(": ")[2].startswith(MOVES_BACK)
    return op.name.startswith(MOVES)
