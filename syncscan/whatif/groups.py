"""From a replay to the smallest sets of findings worth removing, the best saving a change first.

Syncs that only pass the wait on to one another save nothing alone: without one of them the next one waits instead. So
single findings, pairs, and the smallest set that keeps what all together save, compete by saving a change.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import msgspec

WORTH = 0.01
"""A set is worth removing if it saves this part of the step."""
PAIRED, WEIGHED, SETS = 10, 40, 5
"""How many findings are tried in pairs, how many are tried at all, and how many sets are sought at most."""
KEEPS = 0.02
"""A finding stays out of a set if leaving it in costs no more than this part of what the set saves."""

Period = Callable[[frozenset[int]], float]
"""The step's time without these findings."""
Foresee = Callable[[Sequence[frozenset[int]]], None]
"""Replays the step without each of many sets of them at once."""


def _nothing(removals: Sequence[frozenset[int]]) -> None:
    """Each is replayed when it is asked for."""


class Set(msgspec.Struct, frozen=True):
    """Findings to remove after those of the sets before, and the step's time before and after that."""

    members: tuple[int, ...]
    before: float
    after: float

    @property
    def a_change(self) -> float:
        """Saving per finding."""
        return (self.before - self.after) / len(self.members)


def worth_removing(period: Period, candidates: Sequence[int], foresee: Foresee = _nothing) -> Iterator[Set]:
    """The sets, each with those before it removed.

    Args:
        period: the replay; asked some hundred times at most.
        candidates: numbers of the findings, those that wait the longest first.
        foresee: told of what it will be asked.
    """
    rest, gone = list(candidates[:WEIGHED]), frozenset[int]()
    least = WORTH * period(gone)
    for turn in range(SETS):
        now = period(gone)
        if not rest or now - period(gone | frozenset(rest)) < least:
            return
        foresee([*_asked(rest, gone), *(() if turn else _asked_next(period, rest, least, foresee))])
        best = max(_choices(period, rest, gone, now, least), key=lambda s: (s.a_change, -len(s.members)))
        if best.before - best.after < least:
            return
        yield best
        gone |= frozenset(best.members)
        rest = [n for n in rest if n not in gone]


def _asked(rest: Sequence[int], gone: frozenset[int]) -> Iterator[frozenset[int]]:
    """What is asked of a set that is sought among these, others gone."""
    every = gone | frozenset(rest)
    yield from (gone | {n} for n in rest)
    yield from (gone | {*pair} for pair in itertools.combinations(rest[:PAIRED], 2))
    yield from (every - {n} for n in rest)


def _asked_next(period: Period, rest: Sequence[int], least: float, foresee: Foresee) -> Iterator[frozenset[int]]:
    """What will be asked after the first set if the sets are single findings: most are, and many cost little more."""
    foresee([frozenset({n}) for n in rest])
    now = period(frozenset())
    saving = sorted(((now - period(frozenset({n})), n) for n in rest), reverse=True)
    singles = [n for saved, n in saving[: SETS - 1] if saved >= least]
    for count in range(1, len(singles) + 1):
        gone = frozenset(singles[:count])
        yield from _asked([n for n in rest if n not in gone], gone)


def _choices(period: Period, rest: list[int], gone: frozenset[int], now: float, least: float) -> Iterator[Set]:
    alone = {n: now - period(gone | {n}) for n in rest}
    for n in rest:
        yield Set((n,), now, now - alone[n])
    for a, b in itertools.combinations(rest[:PAIRED], 2):
        after = period(gone | {a, b})
        if now - after > alone[a] + alone[b] + least / 2:
            yield Set((a, b), now, after)
    if sum(sorted(alone.values())[-2:]) < now - period(gone | frozenset(rest)) - least:
        yield _smallest(period, rest, gone, now)


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
