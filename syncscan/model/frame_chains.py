"""From the Python frames of one thread to those around any time on it, as names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from syncscan.model.arrays import Int32, Int64

_NONE = -1
"""No frame is open."""
_A_ROUND = 500
"""What a round costs, however few frames it looks at, in frames that could be looked at meanwhile."""
_EACH = 8
"""Frames to look at for each frame before they are gone through one by one instead, which takes as long."""
_KEPT = 1000
"""Frames of a chain that is kept: Python's own limit. Keeping longer ones takes memory that grows with their square."""


class FrameChains:
    """Leads from a time to the frames around it; calls of one site get the same tuple.

    Args:
        strings: names by number.
        names, ts, ends: of the thread's frames, in order of their begins, times in ns.
    """

    def __init__(self, strings: Sequence[str], names: Int32, ts: Int64, ends: Int64) -> None:
        self._strings, self._names, self._ts, self._ends = strings, names, ts, ends
        self._before = _open_before(ts, ends)
        self._by_end = np.argsort(ends, kind="stable")
        self._known: dict[int, _Chain] = {_NONE: _Chain((), (), int(np.iinfo(np.int64).max))}
        self._same: dict[tuple[str, ...], tuple[str, ...]] = {}

    def around(self, begin: int, end: int) -> tuple[str, ...]:
        """Names of the frames that last from `begin` or before to `end` or after, outermost first."""
        if begin == end:
            return self._at(begin)
        at = int(self._ts.searchsorted(begin, side="right")) - 1
        chain = self._chain(at)
        while chain.least < end:
            if self._ends.item(at) >= end:  # one around this ends before it: they overlap, as in damaged traces
                return self._texts([row for row in chain.rows if self._ends.item(row) >= end])
            at = self._before.item(at)
            chain = self._chain(at)
        return chain.names

    def _at(self, time: int) -> tuple[str, ...]:
        """The frames that a moment lies in, or at whose begin or end."""
        first, behind = (int(self._ends.searchsorted(time, side, self._by_end)) for side in ("left", "right"))
        open_ = self._chain(int(self._ts.searchsorted(time, side="right")) - 1).rows
        ending = (row for row in self._by_end[first:behind].tolist() if self._ts.item(row) <= time)
        return self._texts(sorted({*(row for row in open_ if self._ends.item(row) >= time), *ending}))

    def _chain(self, at: int) -> _Chain:
        """A frame and those that were open when it began; none for NONE."""
        inner = []
        while (known := self._known.get(at)) is None:
            inner.append(at)
            at = self._before.item(at)
        for row in reversed(inner):
            names = (*known.names, self._strings[self._names.item(row)])
            known = _Chain(
                (*known.rows, row), self._same.setdefault(names, names), min(known.least, self._ends.item(row))
            )
            if len(names) <= _KEPT:
                self._known[row] = known
        return known

    def _texts(self, rows: Sequence[int]) -> tuple[str, ...]:
        names = tuple([self._strings[self._names.item(row)] for row in rows])
        return self._same.setdefault(names, names)


class _Chain(NamedTuple):
    """A frame and those that were open when it began, outermost first."""

    rows: tuple[int, ...]
    names: tuple[str, ...]
    least: int
    """When the first of them ends."""


def _open_before(ts: Int64, ends: Int64) -> Int64:
    """For each frame the last one that began before it and ends after it begins, NONE without.

    What has ended by then is skipped together with what had ended when that began: in a usual trace each round doubles
    how far is skipped, and behind deep nesting it goes up one level.
    """
    at = np.arange(len(ts)) - 1
    searching, left = np.arange(1, len(ts)), _EACH * len(ts)
    while len(searching) and left > 0:
        left -= len(searching) + _A_ROUND
        searching = searching[ends[at[searching]] <= ts[searching]]
        at[searching] = at[at[searching]]
        searching = searching[at[searching] != _NONE]
    return _swept(ts.tolist(), ends.tolist()) if len(searching) else at


def _swept(ts: Sequence[int], ends: Sequence[int]) -> Int64:
    """The same, one frame after the other."""
    open_: list[int] = []
    before = []
    for row, begin in enumerate(ts):
        while open_ and ends[open_[-1]] <= begin:
            open_.pop()
        before.append(open_[-1] if open_ else _NONE)
        open_.append(row)
    return np.array(before, np.int64)


__all__ = ["FrameChains"]
