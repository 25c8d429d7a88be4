"""From what each slice lies in, or from times alone, to the innermost one around each that counts: pointer doubling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from syncscan.model.arrays import Bool, Int32, Int64, distinct
from syncscan.model.trace import NONE

_ROUNDS = 32
"""More than the doublings that any number of rows takes; what is left then lies behind deep nesting."""


def innermost_that(counts: Bool, parent: Any) -> Any:
    """Return for each row the innermost one around it that counts, NONE without.

    Args:
        counts: which rows do.
        parent: of each row the one that it lies in, NONE without.
    """
    around = parent.copy()
    _led_outwards(around, np.flatnonzero(parent != NONE), lambda _, places: counts.take(places))
    return around


def innermost_until(track: Int32, end: Int64, least: Int64) -> Int64:
    """Return for each interval the last one before it on its track that ends at `least` or later, NONE without.

    Args:
        track: of each interval; those of a track stand together, in order of their begins.
        end: when each ends.
        least: when what lies around it ends at the earliest, later than it begins: so what ends too early to lie around
            one interval does so for each that this one ends too early for.
    """
    around = np.arange(-1, len(end) - 1)
    around[1:][track[1:] != track[:-1]] = NONE
    begun = np.flatnonzero(around != NONE)
    left = _led_outwards(around, begun, lambda rows, places: end.take(places) >= least.take(rows))
    for one in distinct(track[left]).tolist():
        first, last = np.searchsorted(track, [one, one + 1]).tolist()
        around[first:last] = _swept(end[first:last].tolist(), least[first:last].tolist(), first)
    return around


def _led_outwards(around: Any, rows: Int64, stays: Callable[[Int64, Any], Bool]) -> Int64:
    """Lead rows outwards, each to the first place where it stays; return those that `_ROUNDS` weren't enough for.

    A place where a row doesn't stay is skipped together with all that were skipped for that one: in a usual trace each
    round doubles how far is looked, and behind deep nesting it goes up one level.

    Args:
        around: of each row the place to look at first, NONE where there is none; ends up as the answer.
        rows: those that look.
        stays: which of these rows stay at these places.
    """
    for _ in range(_ROUNDS):
        places = around.take(rows)
        left = np.flatnonzero((places != NONE) & ~stays(rows, places))
        if not len(left):
            return left
        rows = rows.take(left)
        around[rows] = around.take(places.take(left))
    return rows


def _swept(end: Sequence[int], least: Sequence[int], first: int) -> list[int]:
    """Return what `innermost_until` does for the intervals of one track, numbered from `first`, one after the other."""
    open_: list[int] = []
    innermost = []
    for row, needed in enumerate(least):
        while open_ and end[open_[-1]] < needed:
            open_.pop()
        innermost.append(first + open_[-1] if open_ else NONE)
        open_.append(row)
    return innermost
