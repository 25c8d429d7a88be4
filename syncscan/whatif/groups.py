"""Find the smallest sets of findings worth removing, the largest saving per change first.

Syncs that only pass the wait on to one another save nothing alone: without one of them, the next one waits instead. So
single findings, pairs, and the smallest set that keeps the saving of all compete by saving per change.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

WORTH, EACH = 0.01, 0.005
"""Least part of the step that a set must save, in total and per change: nobody makes forty changes for 2 %."""
PAIRED, WEIGHED, SETS = 10, 40, 5
"""Number of findings tried in pairs, number of findings tried at all, and most sets."""
KEEPS = 0.02
"""A finding stays out of a set if leaving it in costs at most this part of what the set saves."""

Period = Callable[[frozenset[int]], float]
"""Returns the step's time without these findings."""
Most = Callable[[int, frozenset[int]], float]
"""Returns the most that removing a finding can save once these are removed, possibly with further ones."""


Set = tuple[tuple[int, ...], float, float]
"""Findings to remove after those of the previous sets, and the step's time before and after."""


def worth_removing(
    period: Period,
    candidates: Sequence[int],
    most: Most = lambda number, removed: math.inf,
) -> Iterator[Set]:
    """Yield the sets, each with those before it removed.

    The `candidates` come longest wait first; `period` is called a few hundred times at most. `most` excludes needless
    replays: of a detector's 26 findings, three could save a hundredth each.
    """
    candidates_left, removed = list(candidates[:WEIGHED]), frozenset[int]()
    least, per_change = WORTH * period(removed), EACH * period(removed)
    for _ in range(SETS):
        choices = _choices(period, most, candidates_left, removed, least)
        savings = [((before - after) / len(members), (members, before, after)) for members, before, after in choices]
        worth = [
            (a_change, choice)
            for a_change, choice in savings
            if a_change >= per_change and choice[1] - choice[2] >= least
        ]
        if not worth:
            return
        _, best = max(worth, key=lambda saving: (saving[0], -len(saving[1][0])))
        yield best
        removed |= frozenset(best[0])
        candidates_left = [n for n in candidates_left if n not in removed]


def _choices(period: Period, most: Most, candidates: list[int], removed: frozenset[int], least: float) -> Iterator[Set]:
    now = period(removed)

    def saving(*numbers: int) -> float:
        return now - period(removed | {*numbers})

    together = saving(*candidates)
    if together < least:
        return
    likely = [n for n in candidates if most(n, removed) >= least]
    worth = {n: saved for n in likely if (saved := saving(n)) >= least}
    for n, saved in worth.items():
        yield (n,), now, now - saved
    at_least = max(least, 2 * max(worth.values(), default=0.0))  # else one of them is the better change

    def may_save(first: int, other: int) -> bool:
        # The other one alone saves at least 0, so it must save that much more once the first is removed.
        return most(first, removed) + most(other, removed) >= at_least and most(other, removed | {first}) >= least / 2

    pairs = [pair for pair in itertools.combinations(candidates[:PAIRED], 2) if may_save(*pair)]
    for a, b in pairs:
        if saving(a, b) - least / 2 > saving(a) + saving(b):
            yield (a, b), now, now - saving(a, b)
    if sum(sorted(worth.values())[-2:]) < together - least:  # else removing one after the other leaves nothing
        yield _smallest(period, candidates, removed, now)


def _smallest(period: Period, candidates: list[int], removed: frozenset[int], now: float) -> Set:
    """Return the set that remains when every finding that makes no difference is put back, last to wait first."""
    every = period(removed | frozenset(candidates))
    members, room = list(candidates), every + KEEPS * (now - every)
    for number in reversed(candidates):
        fewer = [n for n in members if n != number]
        if fewer and period(removed | frozenset(fewer)) <= room:
            members = fewer
    return tuple(members), now, period(removed | frozenset(members))
