"""Find the smallest sets of findings worth removing, the largest saving per change first.

Syncs that only pass the wait on to one another save nothing alone: without one of them, the next one waits instead. So
single findings, pairs, and the smallest set that keeps the saving of all compete by saving per change.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import msgspec

WORTH, EACH = 0.01, 0.005
"""Least part of the step that a set must save, in total and per change: nobody makes forty changes for 2 %."""
PAIRED, WEIGHED, SETS = 10, 40, 5
"""Number of findings tried in pairs, number of findings tried at all, and most sets."""
KEEPS = 0.02
"""A finding stays out of a set if leaving it in costs at most this part of what the set saves."""

Period = Callable[[frozenset[int]], float]
"""Returns the step's time without these findings."""
Prefetch = Callable[[Sequence[frozenset[int]]], None]
"""Replays the step without each of many sets of findings at once."""
Most = Callable[[int, frozenset[int]], float]
"""Returns the most that removing a finding can save once these are removed, possibly with further ones."""


def _nothing(removals: Sequence[frozenset[int]]) -> None:
    """Prefetch nothing: each set is replayed on demand."""


def _anything(number: int, removed: frozenset[int]) -> float:
    """Return infinity: nothing is known."""
    return math.inf


class Set(msgspec.Struct, frozen=True):
    """Findings to remove after those of the previous sets, and the step's time before and after."""

    members: tuple[int, ...]
    before: float
    after: float

    @property
    def a_change(self) -> float:
        """Saving per finding."""
        return (self.before - self.after) / len(self.members)


def worth_removing(
    period: Period, candidates: Sequence[int], prefetch: Prefetch = _nothing, most: Most = _anything
) -> Iterator[Set]:
    """Yield the sets, each with those before it removed.

    Args:
        period: the replay; called a few hundred times at most.
        candidates: numbers of the findings, longest waits first.
        prefetch: called in advance with the sets that `period` will need, so that they are replayed together.
        most: excludes needless replays: of a detector's 26 findings, three could save a hundredth each.
    """
    candidates_left, removed = list(candidates[:WEIGHED]), frozenset[int]()
    least, per_change = WORTH * period(removed), EACH * period(removed)
    for _ in range(SETS):
        choices = _Choices(period, prefetch, most, candidates_left, removed, least)
        worth = [
            choice for choice in choices if choice.before - choice.after >= least and choice.a_change >= per_change
        ]
        if not worth:
            return
        best = max(worth, key=lambda s: (s.a_change, -len(s.members)))
        yield best
        removed |= frozenset(best.members)
        candidates_left = [n for n in candidates_left if n not in removed]


def all_but_one(candidates: Sequence[int]) -> list[frozenset[int]]:
    """Return the sets that the search for the smallest set starts with, to be replayed ahead."""
    every = frozenset(candidates[:WEIGHED])
    return [every - {n} for n in candidates[:WEIGHED]]


class _Choices(msgspec.Struct, frozen=True):
    """The sets that may be removed next."""

    period: Period
    prefetch: Prefetch
    most: Most
    rest: list[int]
    gone: frozenset[int]
    least: float

    def __iter__(self) -> Iterator[Set]:
        candidates, removed, now = self.rest, self.gone, self.period(self.gone)
        together = now - self.period(removed | frozenset(candidates))
        if together < self.least:
            return
        likely = [n for n in candidates if self.most(n, removed) >= self.least]
        self.prefetch([removed | {n} for n in likely])
        worth = {n: saving for n in likely if (saving := self._saving(n)) >= self.least}
        for n, saving in worth.items():
            yield Set((n,), now, now - saving)
        at_least = max(self.least, 2 * max(worth.values(), default=0.0))  # else one of them is the better change
        pairs = [pair for pair in self._pairs() if self._may_save_more(*pair, at_least)]
        self.prefetch([removed | {*pair} for pair in pairs])
        for a, b in pairs:
            more = self._saving(a, b) - self.least / 2
            if more > self._saving(a) and more > self._saving(a) + self._saving(b):
                yield Set(tuple(n for n in candidates if n in (a, b)), now, now - self._saving(a, b))
        if sum(sorted(worth.values())[-2:]) < together - self.least:  # else removing one after the other leaves nothing
            self.prefetch([frozenset({*candidates, *removed} - {n}) for n in candidates])
            yield _smallest(self.period, candidates, removed, now)

    def _saving(self, *numbers: int) -> float:
        return self.period(self.gone) - self.period(self.gone | {*numbers})

    def _pairs(self) -> Iterator[tuple[int, int]]:
        """Yield pairs of those that wait longest, in each pair first the one that may save more."""
        for a, b in itertools.combinations(self.rest[:PAIRED], 2):
            yield (a, b) if self.most(a, self.gone) >= self.most(b, self.gone) else (b, a)

    def _may_save_more(self, first: int, other: int, at_least: float) -> bool:
        """Return whether these two together may save enough, and notably more than one after the other."""
        if self.most(first, self.gone) + self.most(other, self.gone) < at_least:
            return False
        # The other one alone saves at least 0, so it must save that much more once the first is removed.
        more = self.most(other, self.gone | {first})
        return more >= self.least / 2 and self._saving(first) + more >= at_least


def _smallest(period: Period, candidates: list[int], removed: frozenset[int], now: float) -> Set:
    """Return the set that remains when every finding that makes no difference is put back, last to wait first.

    Putting one more back never makes the step shorter. So one that makes a difference alone needn't be tried with
    others; and of those that make none, twice as many are put back each time until they are too many, then half of
    them.
    """
    remaining, every = list(candidates), removed | frozenset(candidates)
    room = period(every) + KEEPS * (now - period(every))

    def differs(back: Sequence[int]) -> bool:
        left = frozenset(remaining).difference(back)
        return not left or period(removed | left) > room

    order = [n for n in reversed(candidates) if not differs([n])]
    while order:
        fits, tried = 0, 1
        while fits < len(order) and not differs(order[:tried]):
            fits, tried = min(tried, len(order)), 2 * tried
        differing = min(tried, len(order))
        while differing - fits > 1:
            middle = (fits + differing) // 2
            fits, differing = (fits, middle) if differs(order[:middle]) else (middle, differing)
        remaining, order = [n for n in remaining if n not in order[:fits]], order[differing:]
    return Set(tuple(remaining), now, period(removed | frozenset(remaining)))
