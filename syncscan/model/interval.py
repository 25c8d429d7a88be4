"""Intervals of a trace's time: from a begin to before an end, in int64 nanoseconds on the trace's own clock."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from syncscan.model.arrays import Int64


class Interval(NamedTuple):
    """From `begin` to before `end`, ns."""

    begin: int
    end: int

    @property
    def length(self) -> int:
        """How long it is, ns."""
        return self.end - self.begin

    def touches(self, begin: int, end: int) -> bool:
        """Whether a slice from `begin` to `end` (ns) reaches into it or to its edge."""
        return begin <= self.end and end >= self.begin

    def holds(self, ts: int) -> bool:
        """Whether this time (ns) lies in it."""
        return self.begin <= ts < self.end


class ThreadInterval(NamedTuple):
    """An interval on one host thread: the thread's track, and from `begin` to before `end`, ns."""

    track: int
    begin: int
    end: int


def union(starts: Int64, ends: Int64) -> tuple[Int64, Int64]:
    """The union of intervals that are sorted by their starts, as disjoint ascending ones.

    Args:
        starts: int64 ns, ascending.
        ends: of the same length.

    Returns:
        Starts and ends of the union; intervals that touch are one.
    """
    if not len(starts):
        return starts, ends
    reach = np.maximum.accumulate(ends)
    first = np.concatenate(([True], starts[1:] > reach[:-1]))
    last = np.concatenate((np.flatnonzero(first)[1:] - 1, [len(starts) - 1]))
    return starts[first], reach[last]


def union_of(intervals: list[Interval]) -> list[Interval]:
    """The union of these intervals, in any order, as disjoint ascending ones."""
    if not intervals:
        return []
    starts, ends = (np.array(column, np.int64) for column in zip(*sorted(intervals), strict=True))
    first, last = union(starts, ends)
    return [Interval(*pair) for pair in zip(first.tolist(), last.tolist(), strict=True)]
