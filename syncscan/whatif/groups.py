"""From a replay to the smallest sets of findings worth removing, the best saving a change first.

Syncs that only pass the wait on to one another save nothing alone: without one of them the next one waits instead. So
single findings, pairs, and the smallest set that keeps what all together save, compete by saving a change.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import msgspec

WORTH, EACH = 0.01, 0.005
"""A set is worth removing if it saves this part of the step, and this part a change: nobody makes forty for 2 %."""
PAIRED, WEIGHED, SETS = 10, 40, 5
"""How many findings are tried in pairs, how many are tried at all, and how many sets are sought at most."""
KEEPS = 0.02
"""A finding stays out of a set if leaving it in costs no more than this part of what the set saves."""

Period = Callable[[frozenset[int]], float]
"""The step's time without these findings."""
Foresee = Callable[[Sequence[frozenset[int]]], None]
"""Replays the step without each of many sets of them at once."""
Most = Callable[[int, frozenset[int]], float]
"""What the removal of a finding can make the step shorter by at most, where these are gone; beside others too."""


def _nothing(removals: Sequence[frozenset[int]]) -> None:
    """Each is replayed when it is asked for."""


def _anything(number: int, gone: frozenset[int]) -> float:
    """Nothing is known."""
    return math.inf


class Set(msgspec.Struct, frozen=True):
    """Findings to remove after those of the sets before, and the step's time before and after that."""

    members: tuple[int, ...]
    before: float
    after: float

    @property
    def a_change(self) -> float:
        """Saving per finding."""
        return (self.before - self.after) / len(self.members)


def worth_removing(
    period: Period, candidates: Sequence[int], foresee: Foresee = _nothing, most: Most = _anything
) -> Iterator[Set]:
    """The sets, each with those before it removed.

    Args:
        period: the replay; asked some hundred times at most.
        candidates: numbers of the findings, those that wait the longest first.
        foresee: told of what it will be asked.
        most: rules out what needn't be replayed: of a detector's 26 findings three could save a hundredth each.
    """
    rest, gone = list(candidates[:WEIGHED]), frozenset[int]()
    least, each = WORTH * period(gone), EACH * period(gone)
    for _ in range(SETS):
        choices = _Choices(period, foresee, most, rest, gone, least)
        found = [choice for choice in choices if choice.before - choice.after >= least and choice.a_change >= each]
        if not found:
            return
        best = max(found, key=lambda s: (s.a_change, -len(s.members)))
        yield best
        gone |= frozenset(best.members)
        rest = [n for n in rest if n not in gone]


def all_but_one(candidates: Sequence[int]) -> list[frozenset[int]]:
    """What is asked for the smallest set among candidates: it can be foreseen with what is asked before."""
    every = frozenset(candidates[:WEIGHED])
    return [every - {n} for n in candidates[:WEIGHED]]


class _Choices(msgspec.Struct, frozen=True):
    """What may be removed next."""

    period: Period
    foresee: Foresee
    most: Most
    rest: list[int]
    gone: frozenset[int]
    least: float

    def __iter__(self) -> Iterator[Set]:
        rest, gone, now = self.rest, self.gone, self.period(self.gone)
        together = now - self.period(gone | frozenset(rest))
        if together < self.least:
            return
        likely = [n for n in rest if self.most(n, gone) >= self.least]
        self.foresee([gone | {n} for n in likely])
        worth = {n: saving for n in likely if (saving := self._saving(n)) >= self.least}
        for n, saving in worth.items():
            yield Set((n,), now, now - saving)
        at_least = max(self.least, 2 * max(worth.values(), default=0.0))  # else one of them is the better change
        pairs = [pair for pair in self._pairs() if self._may_save_more(*pair, at_least)]
        self.foresee([gone | {*pair} for pair in pairs])
        for a, b in pairs:
            more = self._saving(a, b) - self.least / 2
            if more > self._saving(a) and more > self._saving(a) + self._saving(b):
                yield Set(tuple(n for n in rest if n in (a, b)), now, now - self._saving(a, b))
        if sum(sorted(worth.values())[-2:]) < together - self.least:  # else one after the other leaves nothing
            self.foresee([frozenset({*rest, *gone} - {n}) for n in rest])
            yield _smallest(self.period, rest, gone, now)

    def _saving(self, *numbers: int) -> float:
        return self.period(self.gone) - self.period(self.gone | {*numbers})

    def _pairs(self) -> Iterator[tuple[int, int]]:
        """Any two of those that wait the longest, first the one that may save more."""
        for a, b in itertools.combinations(self.rest[:PAIRED], 2):
            yield (a, b) if self.most(a, self.gone) >= self.most(b, self.gone) else (b, a)

    def _may_save_more(self, first: int, other: int, at_least: float) -> bool:
        """Whether these two together may save so much, and half of what is worth it more than one after the other."""
        if self.most(first, self.gone) + self.most(other, self.gone) < at_least:
            return False
        # The other one alone saves 0 at least: so it has to save that much more once the first is gone.
        more = self.most(other, self.gone | {first})
        return more >= self.least / 2 and self._saving(first) + more >= at_least


def _smallest(period: Period, rest: list[int], gone: frozenset[int], now: float) -> Set:
    """What is left of all when each is put back that makes no difference; the last to wait are put back first.

    Putting one more back never makes the step shorter. So one that makes a difference alone needn't be tried with
    others; and of those that make none twice as many are put back each time until they are too many, then half of them.
    """
    kept, every = list(rest), gone | frozenset(rest)
    room = period(every) + KEEPS * (now - period(every))

    def differs(back: Sequence[int]) -> bool:
        left = frozenset(kept).difference(back)
        return not left or period(gone | left) > room

    order = [n for n in reversed(rest) if not differs([n])]
    while order:
        fits, tried = 0, 1
        while fits < len(order) and not differs(order[:tried]):
            fits, tried = min(tried, len(order)), 2 * tried
        differing = min(tried, len(order))
        while differing - fits > 1:
            middle = (fits + differing) // 2
            fits, differing = (fits, middle) if differs(order[:middle]) else (middle, differing)
        kept, order = [n for n in kept if n not in order[:fits]], order[differing:]
    return Set(tuple(kept), now, period(gone | frozenset(kept)))
