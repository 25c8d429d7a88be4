"""From how far a replay's threads and streams have come between two cycles to whether it is steady."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from operator import sub
from typing import NamedTuple

MIN_CYCLES, MAX_CYCLES, STEADY = 3, 12, 1e-4
"""Cycles through the recorded steps, and the relative change of a cycle's time that counts as steady."""
BEGIN = 1e9
"""When the hosts begin, ns: what is at 0 then, streams without work and events that are never reached, is long past."""
SAME = 1e-9
"""All is later by one time if it is to this part of it: far more than rounding makes of it, far less than STEADY."""


class Mark(NamedTuple):
    """How far all has come between two steps."""

    ends: list[float]
    """When each thread and each stream is done."""
    events: list[float]
    queues: list[list[float]]
    """Of each launch queue: how long after the thread that is furthest behind each launch in it ends, the last first.
    Only those that end later may hold a host back."""


class Pace:
    """What a cycle through the same steps takes, and whether the next ones will.

    Args:
        begin: where the first begins.
    """

    def __init__(self, begin: Mark) -> None:
        self.last, self.took, self.steady, self.repeats, self._cycles = begin, -1.0, False, False, 1

    def cycle(self, now: Mark) -> None:
        """Another one ended here."""
        before, self.last, self._cycles = self.last, now, self._cycles + 1
        last, self.took = self.took, max(map(sub, now.ends, before.ends))  # what is behind so far won't stay so
        self.repeats = self._repeats(before)
        alike = self._cycles >= MIN_CYCLES and abs(self.took - last) <= STEADY * self.took
        self.steady = self.repeats or alike or self._cycles == MAX_CYCLES

    def _repeats(self, before: Mark) -> bool:
        """Whether all is as much later than before: then it goes on like that. What is at 0 is never touched."""
        now, took, room = self.last, self.took, SAME * self.took
        times = zip((*now.ends, *now.events), (*before.ends, *before.events), strict=True)
        if not all(abs(end - then - took) <= room or end == 0.0 for end, then in times):
            return False
        queues = itertools.starmap(_side_by_side, zip(now.queues, before.queues, strict=True))
        return all(abs(left - then) <= room for queue in queues for left, then in queue)


def _side_by_side(now: Sequence[float], before: Sequence[float]) -> Iterator[tuple[float, float]]:
    return itertools.zip_longest(now, before, fillvalue=0.0)


def left_of(pending: Sequence[tuple[int, float]], clock: Sequence[float]) -> list[float]:
    """A launch queue as `Mark` has it, from its launches' numbers and ends and where the threads are."""
    least = min(clock)
    return [max(0.0, end - least) for _, end in reversed(pending)]
