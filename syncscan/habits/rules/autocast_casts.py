"""Yield the habit for casts of tensors without gradient and for repeated casts of a step.

The lower bound keeps an op's first cast, which may be of its input.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from syncscan.habits.context import Context
from syncscan.habits.optimizers import backward_passes
from syncscan.model.arrays import Int64, distinct
from syncscan.model.duration import duration
from syncscan.model.habit import Change, Habit
from syncscan.model.slice_names import is_engine
from syncscan.model.trace import NONE, Category
from syncscan.rules.pages import advice_of

_NODE = "ToCopyBackward0"
"""Autograd's node of a cast."""


class Casts(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of `aten::to` in time order: casts of a step that could be avoided."""

    frozen: list[int]
    """Casts of tensors without gradients: frozen weights, and everything in a pass without gradients."""
    inputs: list[int]
    """The first of these of each op, which may be of its input rather than a weight."""
    repeated: list[int]
    """Casts of weights that an earlier pass of the same step has already cast."""
    ops: int
    """Number of ops that the casts in `frozen` belong to."""


def autocast_casts(context: Context) -> Casts:
    """Return the casts in the steps; empty if nothing runs under autocast."""
    casts = _casts(context)
    sources = _known(context, casts)
    frozen = sorted({*casts} - {*sources.values()}, key=lambda row: int(context.trace.slices.ts[row]))
    parents = context.trace.slices.parent[frozen]
    _, first = np.unique(parents, return_index=True)
    inputs = [frozen[at] for at in sorted(first.tolist())]
    return Casts(frozen=frozen, inputs=inputs, repeated=_repeated_casts(context, sources), ops=len(inputs))


def _casts(context: Context) -> list[int]:
    """Return the `aten::to`s that launch something, in an op that contains itself."""
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
    """Return the casts with a node of autograd, by its sequence number; of several with one number, the last.

    An op has the number that the thread's next node will get, whether it creates one or not: the casts of a frozen part
    all have that of the first node after it.
    """
    s, trace = context.trace.slices, context.trace
    if not casts:
        return {}
    rows = np.flatnonzero(s.fwd_thread > 0)
    nodes = set(s.sequence[rows[trace.called(rows, lambda name: name == _NODE)]].tolist())
    last = dict(zip(s.sequence[casts].tolist(), casts, strict=True))
    return {number: row for number, row in last.items() if number != NONE and number in nodes}


def _repeated_casts(context: Context, sources: Mapping[int, int]) -> list[int]:
    """Return the casts of weights for any but the first pass of a step."""
    s = context.trace.slices
    repeated: list[int] = []
    last: int | None = None
    for weights in context.cached(backward_passes) if sources else ():
        step = int(context.step_of(s.ts[weights[0]]))
        if step == last:
            sequences = _sequences_before(context, weights)
            repeated += [sources[number] for number in sequences if number in sources]
        last = step
    return sorted(repeated, key=lambda row: int(s.ts[row]))


def _sequences_before(context: Context, gradients: Int64) -> list[int]:
    """Return the sequence numbers of the casts of these gradients' weights, whose nodes ran right before."""
    s, trace, numbers = context.trace.slices, context.trace, []
    engine = trace.named(is_engine)
    for row in gradients.tolist():
        own = int(s.parent[row]) if s.parent[row] != NONE and engine[s.parent[row]] else row
        track = trace.track_rows(int(s.track[row]))
        before = own - 1
        while before >= track.start and not engine[before]:
            before -= 1
        if before >= track.start and trace.name(before).endswith(_NODE):
            numbers.append(int(s.sequence[before]))
    return numbers


LEAST = 0.04
"""Least part of a step for casts to be reported: two equal steps differ by as much on average on an H200's host, and
where 72 casts took 2.4 % of a step, it took as long without them."""


def find(context: Context) -> Iterable[Habit]:
    casts = autocast_casts(context)
    rows = sorted({*casts.frozen, *casts.repeated}, key=lambda row: int(context.trace.slices.ts[row]))
    if len(rows) < context.count:
        return
    host_us = context.length_us(rows) * context.host_scale
    work = [int(row) for cast in rows for row in context.launched(context.interval(cast))]
    device_us = context.length_us(distinct(work).tolist())
    if host_us + device_us < LEAST * context.period_us:
        return
    inputs = set(casts.inputs)
    without_all, least = _without(context, rows), _without(context, [row for row in rows if row not in inputs])
    yield context.habit(
        advice_of("autocast-casts"),
        rows,
        host_us + device_us,
        _evidence(context, casts, host_us, device_us),
        [without_all, replace(without_all, unstretched=True), least],
    )


def _without(context: Context, rows: Sequence[int]) -> Change:
    intervals = tuple(context.interval(row) for row in rows)
    work = tuple((int(row), 0.0) for interval in intervals for row in context.launched(interval))
    return Change(host=intervals, work=work)


def _evidence(context: Context, casts: Casts, host_us: float, device_us: float) -> list[str]:
    sentences = []
    if casts.frozen:
        sentences.append(
            f"{len(casts.frozen) / context.count:.0f} casts per step in {casts.ops / context.count:.0f} ops cast "
            "tensors without gradients, which autocast doesn't cache"
        )
    if casts.repeated:
        sentences.append(f"{len(casts.repeated) / context.count:.0f} casts per step repeat an earlier cast")
    sentences.append(f"they take {duration(host_us)} of host time and {duration(device_us)} of device time")
    return sentences
