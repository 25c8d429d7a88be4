"""Decide whether a replay is steady, by how far threads and streams advance between two cycles."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from operator import sub
from typing import NamedTuple

MIN_CYCLES, MAX_CYCLES, STEADY = 3, 12, 1e-4
"""Least and most cycles through the recorded steps, and relative change of a cycle's time that counts as steady."""
BEGIN = 1e9
"""Time at which hosts begin, ns; streams without work and events never reached are at 0, long before."""
SAME = 1e-9
"""Relative tolerance for everything to be later by one time: far above rounding, far below STEADY."""


class PaceMark(NamedTuple):
    """How far everything has advanced between two steps."""

    ends: list[float]
    """When each thread and each stream is done."""
    events: list[float]
    queues: list[list[float]]
    """For each launch queue, how long after the slowest thread each launch in it ends, the last first. Only those that
    end later can block a host."""


class Pace:
    """Length of a cycle through the same steps, and whether the next ones will be as long.

    Args:
        begin: state at the first cycle's begin.
    """

    def __init__(self, begin: PaceMark) -> None:
        self.last, self.took, self.steady, self.repeats, self._cycles = begin, -1.0, False, False, 1

    def cycle(self, now: PaceMark) -> None:
        """Note the end of a cycle."""
        before, self.last, self._cycles = self.last, now, self._cycles + 1
        last, self.took = self.took, max(map(sub, now.ends, before.ends))  # what is behind so far won't stay so
        self.repeats = self._repeats(before)
        alike = self._cycles >= MIN_CYCLES and abs(self.took - last) <= STEADY * self.took
        self.steady = self.repeats or alike or self._cycles == MAX_CYCLES

    def _repeats(self, before: PaceMark) -> bool:
        """Return whether everything is later by the same time, so that it repeats; entries at 0 were never used."""
        now, took, room = self.last, self.took, SAME * self.took
        times = zip((*now.ends, *now.events), (*before.ends, *before.events), strict=True)
        if not all(abs(end - then - took) <= room or end == 0.0 for end, then in times):
            return False
        queues = itertools.starmap(_side_by_side, zip(now.queues, before.queues, strict=True))
        return all(abs(left - then) <= room for queue in queues for left, then in queue)


def _side_by_side(now: Sequence[float], before: Sequence[float]) -> Iterator[tuple[float, float]]:
    return itertools.zip_longest(now, before, fillvalue=0.0)


def left_of(pending: Sequence[tuple[int, float]], clock: Sequence[float]) -> list[float]:
    """Return a launch queue in the form of `PaceMark`, from its launches' numbers and ends and the threads' times."""
    least = min(clock)
    return [max(0.0, end - least) for _, end in reversed(pending)]
