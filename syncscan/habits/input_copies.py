"""What several input rules ask: which copies bring input to the device, and whether their tensor was just built."""

from __future__ import annotations

import re

import msgspec
import numpy as np

from syncscan.habits.context import Context
from syncscan.model.arrays import Int64
from syncscan.model.runtime_calls import is_stream_synchronise
from syncscan.model.trace import NONE, Category, Trace

FACTORY = re.compile(
    r"aten::(rand|randn|randint|randperm|zeros|ones|full|arange|linspace|eye|tensor|normal|bernoulli|"
    r"(rand|randn|randint|zeros|ones|full)_like|uniform_|normal_|random_|fill_|stack|cat|from_file)"
)
"""Ops that make a tensor's content."""


class Copy(msgspec.Struct, frozen=True):
    """One copy to the device: its runtime call, the device's row, its size in bytes and its times in ns."""

    call: int
    row: int
    size: int
    device_ns: int
    waited_ns: int
    """How long the host waited in the synchronise behind the call."""


def pageable_copies(context: Context) -> list[Copy]:
    """The copies from pageable host memory to the device that the steps' own threads make."""
    return _copies_to_device(context, "Pageable")


def pinned_copies(context: Context) -> list[Copy]:
    """The same from pinned memory."""
    return _copies_to_device(context, "Pinned")


def _copies_to_device(context: Context, kind: str) -> list[Copy]:
    s, trace = context.trace.slices, context.trace
    tracks = {step.track for step in trace.steps}
    rows = trace.where(lambda n: n.startswith("Memcpy HtoD") and kind in n, Category.MEMCPY)
    calls = trace.calls_of(rows)
    known = (calls != NONE) & context.inside(s.ts[calls]) & np.isin(s.track[calls], list(tracks))
    rows, calls = rows[known], calls[known]
    order = np.argsort(s.ts[calls], kind="stable")
    rows, calls = rows[order], calls[order]
    columns = (calls, rows, np.maximum(s.bytes[rows], 0), s.dur[rows], _waited_behind(trace, calls))
    return [Copy(*values) for values in zip(*(column.tolist() for column in columns), strict=True)]


def _waited_behind(trace: Trace, calls: Int64) -> Int64:
    """How long the host waits in a synchronise right behind each of these calls, ns; 0 without."""
    s = trace.slices
    after = np.minimum(calls + 1, len(s) - 1)
    waits = (after > calls) & (s.parent[after] == s.parent[calls]) & trace.called(after, is_stream_synchronise)
    return np.where(waits, s.dur[after], 0)


def copying(context: Context, call: int) -> int:
    """Row of what copies: the outermost op around a runtime call, or the call itself where no op is."""
    op = context.trace.outermost_op(call)
    return call if op == NONE else op


def factories(context: Context) -> dict[int, int]:
    """Of the calls that copy pageable memory: the row of the op that built the tensor on the host, where one did.

    It is the op right before the copy's, if it launched nothing: with no other op between.
    """
    calls = np.array([copy.call for copy in context.once(pageable_copies)], np.int64)
    found = dict[int, int]()
    for call, own in zip(calls.tolist(), context.outer_ops(calls).tolist(), strict=True):
        before = _op_before(context, own) if own != NONE else None
        if before is not None and FACTORY.fullmatch(context.trace.name(before)):
            found[call] = before
    launching = context.launching(np.array(list(found.values()), np.int64)).tolist()
    return {call: row for (call, row), launched in zip(found.items(), launching, strict=True) if not launched}


def _op_before(context: Context, row: int) -> int | None:
    """The op that ended last before this one, with the same parent."""
    s = context.trace.slices
    parent, first = s.parent.item(row), context.trace.track_rows(s.track.item(row)).start
    for other in range(row - 1, max(first, row - 400) - 1, -1):
        if s.parent.item(other) == parent and s.category.item(other) == Category.CPU_OP:
            return other
    return None
