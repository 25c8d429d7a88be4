"""From a Context to the casts that autocast makes of what its ops take, and which of them it makes again.

An op under autocast stands in a trace twice: around its casts, and in itself again, with what was cast
(aten/src/ATen/autocast_mode.h, `WrapFunction_`). It keeps a cast for as long as the outermost region lasts, and only of
a leaf that requires a gradient (autocast_mode.cpp, `cached_cast`): frozen weights are cast at each use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from syncscan.habits.backward_passes import backward_passes
from syncscan.habits.context import Context
from syncscan.model.arrays import Int64
from syncscan.model.names import is_engine
from syncscan.model.trace import NONE, Category

_NODE = "ToCopyBackward0"
"""Autograd's node of a cast."""


class Casts(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of `aten::to`, in time order: casts of a step that needn't be."""

    frozen: list[int]
    """Of what has no gradient: frozen weights, and in a pass without gradients everything."""
    inputs: list[int]
    """Of these the first of each op, which may be its input, and no weight."""
    repeated: list[int]
    """Of weights that an earlier pass of the same step has cast too."""
    ops: int
    """How many ops the first two belong to."""


def autocast_casts(context: Context) -> Casts:
    """The casts in the steps; none where nothing runs under autocast."""
    casts = _casts(context)
    known = _known(context, casts)
    frozen = sorted({*casts} - {*known.values()}, key=lambda row: int(context.trace.slices.ts[row]))
    parents = context.trace.slices.parent[frozen]
    _, first = np.unique(parents, return_index=True)
    inputs = [frozen[at] for at in sorted(first.tolist())]
    return Casts(frozen=frozen, inputs=inputs, repeated=_repeated(context, known), ops=len(inputs))


def _casts(context: Context) -> list[int]:
    """The `aten::to`s that launch something, in an op that holds itself again."""
    s = context.trace.slices
    rows = np.array(context.rows(Category.CPU_OP, lambda name: name == "aten::to"), np.int64)
    rows = rows[s.parent[rows] != NONE]
    if not len(rows):
        return []
    ops, names = context.trace.rows_of(Category.CPU_OP)
    around = s.parent.take(ops)
    wrapped = np.zeros(len(s), np.bool_)
    wrapped[around[(around != NONE) & (names == s.name.take(around))]] = True
    rows = rows[wrapped[s.parent[rows]]]
    casts: list[int] = rows[context.launching(rows)].tolist()
    return casts


def _known(context: Context, casts: Sequence[int]) -> dict[int, int]:
    """The casts that autograd has a node for, by its number: of those with the same number the last.

    An op bears the number that the thread's next node will get, whether it makes one or not: the casts of a frozen
    part all bear that of the first node behind it.
    """
    s, trace = context.trace.slices, context.trace
    if not casts:
        return {}
    rows = np.flatnonzero(s.fwd_thread > 0)
    nodes = set(s.sequence[rows[trace.called(rows, lambda name: name == _NODE)]].tolist())
    last = dict(zip(s.sequence[casts].tolist(), casts, strict=True))
    return {number: row for number, row in last.items() if number != NONE and number in nodes}


def _repeated(context: Context, known: Mapping[int, int]) -> list[int]:
    """Casts of weights for a pass that isn't the first of its step."""
    s = context.trace.slices
    found: list[int] = []
    last: int | None = None
    for weights in context.kept(backward_passes) if known else ():
        step = int(context.step_of(s.ts[weights[0]]))
        if step == last:
            sequences = _sequences_before(context, weights)
            found += [known[number] for number in sequences if number in known]
        last = step
    return sorted(found, key=lambda row: int(s.ts[row]))


def _sequences_before(context: Context, gradients: Int64) -> list[int]:
    """The numbers of the casts whose nodes ran right before these gradients were added: their weights' casts."""
    s, trace, found = context.trace.slices, context.trace, []
    engine = trace.named(is_engine)
    for row in gradients.tolist():
        own = int(s.parent[row]) if s.parent[row] != NONE and engine[s.parent[row]] else row
        track = trace.track_rows(int(s.track[row]))
        before = own - 1
        while before >= track.start and not engine[before]:
            before -= 1
        if before >= track.start and trace.name(before).endswith(_NODE):
            found.append(int(s.sequence[before]))
    return found
