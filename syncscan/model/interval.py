"""Intervals of time from a begin to an exclusive end, in int64 ns on the trace's clock."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from syncscan.model.arrays import Bool, Int64

_NEVER = np.iinfo(np.int64).max
"""A time later than any other."""


class Interval(NamedTuple):
    """An interval from `begin` to the exclusive `end`, ns."""

    begin: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.begin

    def touches(self, begin: int, end: int) -> bool:
        """Return whether a slice from `begin` to `end` (ns) overlaps the interval or touches its edge."""
        return begin <= self.end and end >= self.begin

    def holds(self, ts: int) -> bool:
        return self.begin <= ts < self.end


class ThreadInterval(NamedTuple):
    """An interval on one host thread: the thread's track, `begin`, and exclusive `end`, ns."""

    track: int
    begin: int
    end: int


def union(starts: Int64, ends: Int64) -> tuple[Int64, Int64]:
    """Return the union of intervals sorted by start, as disjoint ascending ones; intervals that touch are one."""
    if not len(starts):
        return starts, ends
    reach = np.maximum.accumulate(ends)
    gaps = np.flatnonzero(starts[1:] > reach[:-1])
    return starts.take(np.concatenate(([0], gaps + 1))), reach.take(np.concatenate((gaps, [len(starts) - 1])))


class Cover:
    """Disjoint ascending intervals, as `union` returns them, that answer how much of any interval they cover."""

    def __init__(self, starts: Int64, ends: Int64) -> None:
        self.starts, self.ends = starts, ends
        self._sum = np.concatenate([np.zeros(1, np.int64), np.cumsum(ends - starts)])

    @property
    def length(self) -> int:
        """Total length, ns."""
        return int(self._sum[-1])

    @property
    def intervals(self) -> list[Interval]:
        return list(map(Interval, self.starts.tolist(), self.ends.tolist()))

    def between(self, begin: int, end: int) -> int:
        """Return how much of one interval is covered, ns; 0 if it ends before it begins."""
        return self._until(end) - self._until(begin) if end > begin else 0

    def _until(self, at: int) -> int:
        begun = int(self.starts.searchsorted(at))
        return self._sum.item(begun) - max(0, self.ends.item(begun - 1) - at) if begun else 0

    def within(self, begins: Int64, ends: Int64) -> Int64:
        """Return how much of each of these intervals is covered, ns; 0 for one that ends before it begins.

        The begins ascend; the ends may come in any order.
        """
        if not len(begins):
            return begins
        near = slice(*np.searchsorted(self.ends, begins[[0, -1]], side="right").tolist())
        following = slice(near.start, near.stop + 1)
        times = np.diff(np.searchsorted(begins, self.ends[near]), prepend=0, append=len(begins))
        begun = np.repeat(
            self._or_never(self.starts, following), times
        )  # start of the first interval that isn't over then
        covered: Int64 = np.maximum(ends, begun)
        covered -= np.maximum(begins, begun, out=begun)
        np.maximum(covered, 0, out=covered)
        far = np.flatnonzero(ends > np.repeat(self._or_never(self.ends, following), times))  # few reach into a second
        covered[far] = np.maximum(self.before(ends[far]) - self.before(begins[far]), 0)
        return covered

    def _or_never(self, times: Int64, some: slice) -> Int64:
        """Return a slice of the starts or ends, with a time that never comes after the last one."""
        return times[some] if some.stop <= len(times) else np.append(times[some], _NEVER)

    def holds(self, times: Int64) -> Bool:
        over = np.searchsorted(self.ends, times, side="right")
        held: Bool = np.append(self.starts, _NEVER).take(over) <= times
        return held

    def without(self, other: Cover) -> Cover:
        bounds = self.starts, self.ends, other.starts, other.ends
        turns = np.concatenate(bounds)
        order = np.argsort(turns, kind="stable")  # quick, as each of the four ascends
        within = np.cumsum(np.repeat(np.array([1, -1, -2, 2], np.int8), [len(times) for times in bounds])[order])
        turns = turns[order]
        left = np.flatnonzero((within[:-1] == 1) & (turns[:-1] < turns[1:]))  # covered by self alone
        return Cover(*union(turns[left], turns[left + 1]))

    def before(self, times: Int64) -> Int64:
        """Return how much is covered before each of these times, ns."""
        before = np.searchsorted(self.ends, times, side="right")
        begun = np.append(self.starts, _NEVER)[before]
        until: Int64 = self._sum[before] + np.maximum(times - np.minimum(begun, times), 0)
        return until


def cover_of(intervals: Sequence[tuple[int, int]]) -> Cover:
    """Return the cover of these intervals, in any order."""
    starts, ends = np.fromiter(chain.from_iterable(intervals), np.int64).reshape(-1, 2).T
    order = np.lexsort((ends, starts))
    return Cover(*union(starts[order], ends[order]))
