"""Yield the habit for casts of tensors without gradient, which autocast doesn't cache.

The lower bound keeps an op's first cast, which may be of its input.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec.structs import replace

from syncscan.habits.context import Context
from syncscan.model.arrays import distinct
from syncscan.model.duration import duration
from syncscan.model.habit import Change, Habit
from syncscan.model.trace import NONE, Category
from syncscan.rules.pages import advice_of

_NODE = "ToCopyBackward0"
"""Autograd's node of a cast."""


def frozen_casts(context: Context) -> list[int]:
    """Return the `aten::to`s in the steps that cast tensors without gradients, in time order.

    Those are frozen weights, and everything in a pass without gradients; none if nothing runs under autocast.
    """
    casts = _casts(context)
    return sorted({*casts} - _recorded(context, casts), key=lambda row: int(context.trace.slices.ts[row]))


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


def _recorded(context: Context, casts: Sequence[int]) -> set[int]:
    """Return the casts with a node of autograd, by its sequence number; of several with one number, the last.

    An op has the number that the thread's next node will get, whether it creates one or not: the casts of a frozen part
    all have that of the first node after it.
    """
    s, trace = context.trace.slices, context.trace
    if not casts:
        return set()
    rows = np.flatnonzero(s.fwd_thread > 0)
    nodes = set(s.sequence[rows[trace.called(rows, lambda name: name == _NODE)]].tolist())
    last = dict(zip(s.sequence[casts].tolist(), casts, strict=True))
    return {row for number, row in last.items() if number != NONE and number in nodes}


LEAST = 0.04
"""Least part of a step for casts to be reported: two equal steps differ by as much on average on an H200's host, and
where 72 casts took 2.4 % of a step, it took as long without them."""


def find(context: Context) -> Iterable[Habit]:
    rows = frozen_casts(context)
    if len(rows) < context.count:
        return
    host_us = context.length_us(rows) * context.host_scale
    work = [int(row) for cast in rows for row in context.launched(context.interval(cast))]
    device_us = context.length_us(distinct(work).tolist())
    if host_us + device_us < LEAST * context.period_us:
        return
    _, firsts = np.unique(context.trace.slices.parent[rows], return_index=True)
    inputs = {rows[at] for at in firsts.tolist()}  # the first cast of an op may be of its input rather than a weight
    without_all, least = _without(context, rows), _without(context, [row for row in rows if row not in inputs])
    yield context.habit(
        advice_of("autocast-casts"),
        rows,
        host_us + device_us,
        [
            f"{len(rows) / context.count:.0f} casts per step in {len(inputs) / context.count:.0f} ops cast "
            "tensors without gradients, which autocast doesn't cache",
            f"they take {duration(host_us)} of host time and {duration(device_us)} of device time",
        ],
        [without_all, replace(without_all, unstretched=True), least],
    )


def _without(context: Context, rows: Sequence[int]) -> Change:
    intervals = tuple(context.interval(row) for row in rows)
    work = tuple((int(row), 0.0) for interval in intervals for row in context.launched(interval))
    return Change(host=intervals, work=work)
