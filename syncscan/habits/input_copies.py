"""Find copies that bring input to the device, and whether their tensor was just built, for the input rules."""

from __future__ import annotations

import re

import msgspec
import numpy as np

from syncscan.habits.context import Context
from syncscan.model.arrays import Int64
from syncscan.model.runtime_calls import is_stream_synchronize
from syncscan.model.trace import NONE, Category, Trace

FACTORY = re.compile(
    r"aten::(rand|randn|randint|randperm|zeros|ones|full|arange|linspace|eye|tensor|normal|bernoulli|"
    r"(rand|randn|randint|zeros|ones|full)_like|uniform_|normal_|random_|fill_|stack|cat|from_file)"
)
"""Ops that create a tensor's content."""
_NEAR = 400
"""Rows before a copy's op to search; an op that builds a tensor contains fewer slices."""


class Copy(msgspec.Struct, frozen=True):
    """A copy to the device: its runtime call, the device's row, its size in bytes and its times in ns."""

    call: int
    row: int
    size: int
    device_ns: int
    waited_ns: int
    """How long the host waited in the synchronize after the call."""


def pageable_copies(context: Context) -> list[Copy]:
    """Return the copies from pageable host memory to the device on the steps' own threads."""
    return _copies_to_device(context, "Pageable")


def pinned_copies(context: Context) -> list[Copy]:
    """Return the copies from pinned host memory to the device on the steps' own threads."""
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
    """Return how long the host waits in a synchronize right after each of these calls, ns; 0 without one."""
    s = trace.slices
    after = np.minimum(calls + 1, len(s) - 1)
    waits = (after > calls) & (s.parent[after] == s.parent[calls]) & trace.called(after, is_stream_synchronize)
    return np.where(waits, s.dur[after], 0)


def copying(context: Context, call: int) -> int:
    """Return the row of what copies: the outermost op around a runtime call, or the call itself without one."""
    op = context.paths.outermost_op(call)
    return call if op == NONE else op


def factories(context: Context) -> dict[int, int]:
    """Return for calls that copy pageable memory the row of the op that built the tensor on the host, if one did.

    It is the op right before the copy's, with no other op between, if it launched nothing.
    """
    calls = np.array([copy.call for copy in context.cached(pageable_copies)], np.int64)
    own = np.array(list(map(context.paths.outermost_op, calls.tolist())), np.int64)
    calls, own = calls[own != NONE], own[own != NONE]
    before = _ops_before(context.trace, own)
    calls, before = calls[before != NONE], before[before != NONE]
    built = context.trace.called(before, FACTORY.fullmatch)
    built[built] = ~context.launching(before[built])
    return dict(zip(calls[built].tolist(), before[built].tolist(), strict=True))


def _ops_before(trace: Trace, rows: Int64, near: int = _NEAR) -> Int64:
    """Return for each op the row of the op that ended last before it under the same parent, or NONE.

    Only the `near` rows before each op are searched.
    """
    s, parent = trace.slices, trace.slices.parent[rows]
    first = np.array([trace.track_rows(track).start for track in range(len(trace.tracks))], np.int64)
    least = np.maximum(np.maximum(first[s.track[rows]], parent + 1), rows - near)  # rows around it come before it
    previous, left, at = np.full(len(rows), NONE, np.int64), np.arange(len(rows)), rows - 1
    while len(left):
        reached = at >= least[left]
        left, at = left[reached], at[reached]
        it_is = (s.parent[at] == parent[left]) & (s.category[at] == int(Category.CPU_OP))
        previous[left[it_is]] = at[it_is]
        left, at = left[~it_is], at[~it_is] - 1
    return previous
