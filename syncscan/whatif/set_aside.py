"""Find what of the step goes along with removed syncs.

A check that goes takes along the ops that only computed what it asked; a shape that no longer depends on data needs no
gathering and scattering.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from syncscan.facts.network import OutermostOp, ops_of
from syncscan.model.finding import Finding, Removal
from syncscan.model.habit import Change
from syncscan.model.interval import Interval, ThreadInterval
from syncscan.model.trace import Trace

FEEDS = frozenset(
    f"aten::{name}"
    for name in (
        "all", "any", "isfinite", "isnan", "isinf", "eq", "ne", "lt", "gt", "le", "ge", "logical_not", "logical_and",
        "bitwise_and", "bitwise_not", "max", "min", "amax", "amin", "argmax", "norm", "linalg_vector_norm", "mean",
        "sum", "softmax", "to", "abs", "select", "bincount", "slice", "detach", "stack", "unbind",
    )
)  # fmt: skip
"""Ops that make a number, or a truth, to be read."""
MOVES = (
    "aten::index", "aten::_index_put", "aten::gather", "aten::scatter", "aten::masked_", "aten::split", "aten::cat",
)  # fmt: skip
"""How ops begin that gather rows by a data-dependent shape, or put them back."""
MOVES_BACK = ("Index", "Gather", "Scatter", "Masked", "Split", "Cat")
"""How the names of their backward nodes begin."""
MOST_OPS = 6
"""The most ops of a check: more aren't its own."""


def set_aside(trace: Trace, steps: Sequence[Interval], removed: Sequence[Finding]) -> Change:
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
        if op.name not in FEEDS:
            return
        yield op


def _moves(op: OutermostOp) -> bool:
    if op.backward:
        return op.name.rpartition(": ")[2].startswith(MOVES_BACK)
    return op.name.startswith(MOVES)
