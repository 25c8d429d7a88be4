"""The types of the arrays that stages pass to one another, one-dimensional numpy columns; and what numpy is slow at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
Int16 = npt.NDArray[np.int16]
Int8 = npt.NDArray[np.int8]
Float64 = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]
Texts = npt.NDArray[np.str_]

_TABLE = 8
"""So many entries a number a table may have, before sorting the numbers costs less."""
_MOST_OF_32 = np.iinfo(np.int32).max
_BLOCK = 1 << 16
"""Rows that are worked on at a time where columns on the way would be as long as the trace: memory that a process gets
anew costs 3 to 10 µs a page on the virtual machines measured here, which is more than most of what is done with it."""


def blocks(length: int, first: int = 0) -> Iterator[slice]:
    """Rows from `first` on, `length` of them, as consecutive slices of a size that stays in a processor's cache."""
    behind = first + length
    for begin in range(first, behind, _BLOCK):
        yield slice(begin, min(begin + _BLOCK, behind))


def distinct(column: Any) -> Any:
    """The different values of a column, ascending; `np.unique` hashes integers, which takes longer."""
    ascending = np.sort(column)
    return ascending[np.append(True, ascending[1:] != ascending[:-1])] if len(ascending) else ascending


def grouped(column: Any) -> Iterator[tuple[int, Int64]]:
    """Each different value of a column, ascending, with the places where it stands, ascending."""
    order = np.argsort(column, kind="stable")
    ascending = column[order]
    bounds = np.flatnonzero(ascending[1:] != ascending[:-1]) + 1
    for places in np.split(order, bounds) if len(order) else ():
        yield column.item(int(places[0])), places


def looked_up(table: Any, places: Any, first: int = 0) -> Any:
    """The entries of a table at these places; `take`, which makes 64-bit numbers of all narrower ones first.

    Args:
        table: one-dimensional.
        places: as long as the trace, or nearly.
        first: the number of the table's first place.
    """
    found = np.empty(len(places), table.dtype)
    for rows in blocks(len(places)):
        found[rows] = table.take(places[rows] - first if first else places[rows])
    return found


def summed(column: Any, which: Any, count: int) -> Float64:
    """The sums of a column by numbers from 0 to below `count`; `np.bincount`, which copies both columns as a whole.

    Args:
        column: int64, whose sums stay below 2**53, so that none is rounded.
        which: of the same length, the number of each.
        count: how many sums.
    """
    if count > _BLOCK:  # so many that each block's sums would take longer than its rows
        return np.asarray(np.bincount(which, column, count), np.float64)
    sums = np.zeros(count)
    for rows in blocks(len(column)):
        sums += np.bincount(which[rows], column[rows], count)
    return sums


def numbered_pairs(first: Any, second: Any) -> tuple[Int64, Int32]:
    """Number the different pairs of two columns; as `np.unique` of their rows, which takes ten times as long.

    Args:
        first, second: of one length, numbers of 32 bits.

    Returns:
        The pairs in ascending order, one a row, and for each place of the columns the number of its pair.
    """
    if not len(first):
        return np.zeros((0, 2), np.int64), np.zeros(0, np.int32)
    least = int(second.min())
    width = int(second.max()) - least + 1
    most = (max(int(first.max()), -int(first.min())) + 1) * width
    each = np.multiply(first, width, dtype=np.int32 if most <= _MOST_OF_32 else np.int64)
    each += second.astype(each.dtype, copy=False)
    each -= least
    codes, which = numbered(each)
    return np.stack([codes // width, codes % width + least], axis=1), which


def numbered(codes: Any) -> tuple[Int64, Int32]:
    """The different ones, ascending, and for each its place among them; as `np.unique`, sooner where they lie close."""
    if not len(codes):
        return np.zeros(0, np.int64), np.zeros(0, np.int32)
    least = int(codes.min())
    span = int(codes.max()) - least + 1
    if span > _TABLE * len(codes):
        known, which = np.unique(codes, return_inverse=True)
        return known.astype(np.int64), which.reshape(-1).astype(np.int32)
    there = np.zeros(span, np.bool_)  # where they lie close together a table tells it, and nothing is sorted
    for rows in blocks(len(codes)):
        there[codes[rows] - least] = True
    return np.flatnonzero(there) + least, looked_up(np.cumsum(there, dtype=np.int32) - 1, codes, least)


def median(values: Any) -> float:
    """The middle of some numbers, as `np.median`, which imports all of `numpy.ma` to look for masks.

    Args:
        values: at least one number, none of them NaN.
    """
    numbers = np.asarray(values)
    low, high = (len(numbers) - 1) // 2, len(numbers) // 2
    middle = np.partition(numbers, (low, high))
    return float(middle[high]) if low == high else (float(middle[low]) + float(middle[high])) / 2


def quantile(values: Any, share: float) -> float:
    """What this share of some numbers lies below, between two of them in proportion; as `np.quantile`, see `median`.

    Args:
        values: at least one number, none of them NaN.
        share: from 0 to 1.
    """
    ascending = np.sort(np.asarray(values, np.float64))
    at = share * (len(ascending) - 1)
    below = int(at)
    low, high = float(ascending[below]), float(ascending[min(below + 1, len(ascending) - 1)])
    part = at - below
    return high - (high - low) * (1 - part) if part >= 0.5 else low + (high - low) * part


def among(values: Int64, ascending: Int64) -> Bool:
    """Which of these values the ascending ones hold; `np.isin` sorts both, each time."""
    if not len(ascending):
        return np.zeros(len(values), np.bool_)
    at = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    held: Bool = ascending[at] == values
    return held
