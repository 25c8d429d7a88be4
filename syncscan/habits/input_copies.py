"""What several input rules ask: which copies bring input to the device, and whether their tensor was just built."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from syncscan.habits.context import Context
from syncscan.model.runtime_calls import is_stream_synchronise
from syncscan.model.trace import NONE, Category

FACTORY = re.compile(
    r"aten::(rand|randn|randint|randperm|zeros|ones|full|arange|linspace|eye|tensor|normal|bernoulli|"
    r"(rand|randn|randint|zeros|ones|full)_like|uniform_|normal_|random_|fill_|stack|cat|from_file)"
)
"""Ops that make a tensor's content."""


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy to the device: its runtime call, the device's row, its size in bytes and its times in ns."""

    call: int
    row: int
    size: int
    device_ns: int
    waited_ns: int
    """How long the host waited in the synchronise behind the call."""


def copies_to_device(context: Context, pageable: bool) -> list[Copy]:
    """The copies from pageable, or from pinned, host memory to the device that the steps' own threads make."""
    s, trace = context.trace.slices, context.trace
    kind = "Pageable" if pageable else "Pinned"
    mask = trace.is_category(Category.MEMCPY) & trace.named(lambda n: n.startswith("Memcpy HtoD") and kind in n)
    tracks = {step.track for step in trace.steps}
    found = []
    rows = np.flatnonzero(mask)
    calls = context.trace.calls_of(rows)
    known = (calls != NONE) & context.inside(s.ts[calls]) & np.isin(s.track[calls], list(tracks))
    for row, call in zip(rows[known].tolist(), calls[known].tolist(), strict=True):
        waited = _synchronise_behind(context, call)
        found.append(Copy(call, row, max(int(s.bytes[row]), 0), int(s.dur[row]), waited))
    return sorted(found, key=lambda c: int(s.ts[c.call]))


def _synchronise_behind(context: Context, call: int) -> int:
    s, trace = context.trace.slices, context.trace
    after = call + 1
    if after < len(s) and s.parent[after] == s.parent[call] and is_stream_synchronise(trace.name(after)):
        return int(s.dur[after])
    return 0


def copying(context: Context, call: int) -> int:
    """Row of what copies: the outermost op around a runtime call, or the call itself where no op is."""
    op = context.trace.outermost_op(call)
    return call if op == NONE else op


def factory_before(context: Context, call: int) -> int | None:
    """Row of the op that built the copied tensor on the host: the one right before the copy's, if it launched nothing.

    It must end shortly before the copy's op begins, with no other op between.
    """
    trace = context.trace
    own = trace.outermost_op(call)
    if own == NONE:
        return None
    before = _op_before(context, own)
    if before is None or not FACTORY.fullmatch(trace.name(before)):
        return None
    return None if len(context.launched(context.interval(before))) else before


def _op_before(context: Context, row: int) -> int | None:
    """The op that ended last before this one, with the same parent."""
    s = context.trace.slices
    parent, first = s.parent.item(row), int(np.searchsorted(s.track, s.track[row]))
    for other in range(row - 1, max(first, row - 400) - 1, -1):
        if s.parent.item(other) == parent and s.category.item(other) == Category.CPU_OP:
            return other
    return None
