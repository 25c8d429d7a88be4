"""Find the innermost enclosing slice that counts, by parents or by times alone, with pointer doubling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from syncscan.model.arrays import Bool, Int32, Int64, distinct
from syncscan.model.trace import NONE

_ROUNDS = 32
"""More doublings than any number of rows takes; rows left after them lie behind deep nesting."""


def innermost_that(counts: Bool, parent: Any) -> Any:
    """Return for each row the innermost row around it that counts, or NONE."""
    around = parent.copy()
    _led_outwards(around, np.flatnonzero(parent != NONE), lambda _, places: counts.take(places))
    return around


def innermost_until(track: Int32, end: Int64, least: Int64) -> Int64:
    """Return for each interval the last one before it on its track that ends at `least` or later, or NONE.

    Intervals of a track are adjacent and ordered by begin. `least` is the earliest end of what can enclose each one,
    later than its begin. An interval that ends too early to enclose one also ends too early for all that this one ends
    too early for.
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
    """Lead each row outwards to the first place where it stays; return rows that need more than `_ROUNDS`.

    A place where a row doesn't stay is skipped together with all that were skipped for it. In a usual trace each round
    doubles the distance; behind deep nesting it goes up one level.

    `around` is the first place to try for each row, or NONE, and holds the answer afterwards.
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
    """Return the result of `innermost_until` for the intervals of one track, numbered from `first`, with a stack."""
    open_: list[int] = []
    innermost = []
    for row, needed in enumerate(least):
        while open_ and end[open_[-1]] < needed:
            open_.pop()
        innermost.append(first + open_[-1] if open_ else NONE)
        open_.append(row)
    return innermost
