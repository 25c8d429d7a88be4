"""From the Python frames of one thread to those around any time on it, as names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from syncscan.model.arrays import Int32, Int64, chains, distinct, rows_as_bytes

_NONE = -1
"""No frame is open."""
_A_ROUND = 500
"""What a round costs, however few frames it looks at, in frames that could be looked at meanwhile."""
_EACH = 8
"""Frames to look at for each frame before they are gone through one by one instead, which takes as long."""
_KEPT = 1000
"""Frames of a chain that is kept: Python's own limit. Keeping longer ones takes memory that grows with their square."""
_TOGETHER = 1 << 11
"""Chains that are climbed at once: of the deepest that are kept they take some 30 MB meanwhile."""
_UNKNOWN, _NEVER = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)


class FrameChains:
    """Leads from a time to the frames around it; calls of one site get the same tuple.

    Args:
        strings: names by number.
        names, ts, ends: of the thread's frames, in order of their begins, times in ns.
    """

    def __init__(self, strings: Sequence[str], names: Int32, ts: Int64, ends: Int64) -> None:
        self._strings, self._names, self._ts, self._ends = strings, names, ts, ends
        self._before = _open_before(ts, ends)
        self._known: dict[int, tuple[str, ...]] = {_NONE: ()}
        """Of a frame the names of those that were open when it began and its own, outermost first."""
        self._least = np.append(np.full(len(ts), _UNKNOWN), _NEVER)
        """When the first of these ends; of NONE, which is -1, at the end."""
        self._called: dict[bytes, tuple[str, ...]] = {}
        """The names of a chain by their numbers."""
        self._same: dict[tuple[str, ...], tuple[str, ...]] = {}

    def around_each(self, begins: Int64, ends: Int64) -> list[tuple[str, ...]]:
        """For each pair of times names of the frames that last from the first or before to the second or after."""
        at = self._innermost(begins, ends)
        self._prepare(distinct(at))
        found = [self._known.get(frame, ()) for frame in at.tolist()]
        for place in np.flatnonzero((begins == ends) | (self._least[at] < ends)).tolist():
            begin, end = begins.item(place), ends.item(place)
            if begin == end:
                found[place] = self._at(begin)
            else:  # one around this ends before it: they overlap, or lie too deep
                found[place] = self._texts([row for row in self._rows(at.item(place)) if self._ends.item(row) >= end])
        return found

    def _innermost(self, begins: Int64, ends: Int64) -> Int64:
        """For each of these pairs of times the last frame that begins by the one and lasts to the other, or NONE."""
        at = self._ts.searchsorted(begins, side="right") - 1
        left = np.flatnonzero(at != _NONE)
        while len(left):
            left = left[self._ends[at[left]] < ends[left]]
            at[left] = self._before[at[left]]
            left = left[at[left] != _NONE]
        return at

    def _at(self, time: int) -> tuple[str, ...]:
        """The frames that a moment lies in, or at whose begin or end."""
        first, behind = (int(self._ends.searchsorted(time, side, self._by_end)) for side in ("left", "right"))
        open_ = self._rows(int(self._ts.searchsorted(time, side="right")) - 1)
        ending = (row for row in self._by_end[first:behind].tolist() if self._ts.item(row) <= time)
        return self._texts(sorted({*(row for row in open_ if self._ends.item(row) >= time), *ending}))

    @cached_property
    def _by_end(self) -> Int64:
        """The frames in order of their ends."""
        return np.argsort(self._ends, kind="stable")

    def _rows(self, at: int) -> list[int]:
        """A frame and those that were open when it began, outermost first; none for NONE."""
        rows = []
        while at != _NONE:
            rows.append(at)
            at = self._before.item(at)
        return rows[::-1]

    def _prepare(self, frames: Int64) -> None:
        """Have the chains of these frames at hand, but for those that lie too deep."""
        asked = frames[self._least[frames] == _UNKNOWN]
        for first in range(0, len(asked), _TOGETHER):
            self._climb(asked[first : first + _TOGETHER])

    def _climb(self, frames: Int64) -> None:
        climbed = chains(frames, self._before, _KEPT + 1)
        none = climbed == _NONE
        unused, numbers = none.sum(axis=1), self._names[climbed]
        kept = climbed.shape[1] - unused <= _KEPT
        self._least[frames[kept]] = np.where(none, _NEVER, self._ends[climbed]).min(axis=1)[kept]
        begins = (unused * numbers.itemsize).tolist()
        for frame, called, first, keep in zip(
            frames.tolist(), rows_as_bytes(numbers), begins, kept.tolist(), strict=True
        ):
            if keep:
                self._known[frame] = self._names_of(called[first:])

    def _names_of(self, key: bytes) -> tuple[str, ...]:
        known = self._called.get(key)
        if known is None:
            names = tuple([self._strings[number] for number in np.frombuffer(key, self._names.dtype).tolist()])
            known = self._called[key] = self._same.setdefault(names, names)
        return known

    def _texts(self, rows: Sequence[int]) -> tuple[str, ...]:
        names = tuple([self._strings[self._names.item(row)] for row in rows])
        return self._same.setdefault(names, names)


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
