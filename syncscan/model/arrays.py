"""Types of the numpy columns that stages pass to one another, and faster versions of some numpy functions."""

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
"""Largest size of a lookup table per number; beyond it sorting is faster."""
_MOST_OF_32 = np.iinfo(np.int32).max
_BLOCK = 1 << 16
"""Rows processed at a time where temporaries would be as long as the trace: fresh memory costs a process 3 to 10 µs per
page on the virtual machines measured, more than most of the work on it."""


def blocks(length: int, first: int = 0) -> Iterator[slice]:
    """Yield `length` rows from `first` on as consecutive slices of a size that fits into a processor's cache."""
    behind = first + length
    for begin in range(first, behind, _BLOCK):
        yield slice(begin, min(begin + _BLOCK, behind))


def distinct(column: Any) -> Any:
    """Return the distinct values of a column, ascending; faster than `np.unique`, which hashes integers."""
    ascending = np.sort(column)
    return ascending[np.append(True, ascending[1:] != ascending[:-1])] if len(ascending) else ascending


def grouped(column: Any) -> Iterator[tuple[int, Int64]]:
    """Yield each distinct value of a column, ascending, with its ascending indices."""
    order = np.argsort(column, kind="stable")
    ascending = column[order]
    bounds = np.flatnonzero(ascending[1:] != ascending[:-1]) + 1
    for places in np.split(order, bounds) if len(order) else ():
        yield column.item(int(places[0])), places


def looked_up(table: Any, places: Any, first: int = 0) -> Any:
    """Return a table's entries at indices that count from `first`; unlike `take`, it doesn't widen these to 64 bits."""
    entries = np.empty(len(places), table.dtype)
    for rows in blocks(len(places)):
        entries[rows] = table.take(places[rows] - first if first else places[rows])
    return entries


def summed(column: Any, which: Any, count: int) -> Float64:
    """Return sums of a column per number below `count`; unlike `np.bincount`, it copies neither column as a whole.

    The column is int64, and its sums stay below 2**53, so that none is rounded.
    """
    if count > _BLOCK:  # summing per block would cost more than its rows
        return np.asarray(np.bincount(which, column, count), np.float64)
    sums = np.zeros(count)
    for rows in blocks(len(column)):
        sums += np.bincount(which[rows], column[rows], count)
    return sums


def numbered_pairs(first: Any, second: Any) -> tuple[Int64, Int32]:
    """Find and number the distinct pairs of two columns, ten times faster than `np.unique` of their rows.

    Both hold numbers of 32 bits. The pairs ascend, one a row; the second array has, for each place of the columns, the
    number of its pair.
    """
    if not len(first):
        return np.zeros((0, 2), np.int64), np.zeros(0, np.int32)
    least = int(second.min())
    width = int(second.max()) - least + 1
    most = (max(int(first.max()), -int(first.min())) + 1) * width
    pairs = np.multiply(first, width, dtype=np.int32 if most <= _MOST_OF_32 else np.int64)
    pairs += second.astype(pairs.dtype, copy=False)
    pairs -= least
    codes, which = numbered(pairs)
    return np.stack([codes // width, codes % width + least], axis=1), which


def numbered(codes: Any) -> tuple[Int64, Int32]:
    """Return the distinct codes, ascending, and each code's index among them; fast for dense codes."""
    if not len(codes):
        return np.zeros(0, np.int64), np.zeros(0, np.int32)
    least = int(codes.min())
    span = int(codes.max()) - least + 1
    if span > _TABLE * len(codes):
        known, which = np.unique(codes, return_inverse=True)
        return known.astype(np.int64), which.reshape(-1).astype(np.int32)
    present = np.zeros(span, np.bool_)  # dense codes need a lookup table, no sorting
    for rows in blocks(len(codes)):
        present[codes[rows] - least] = True
    return np.flatnonzero(present) + least, looked_up(np.cumsum(present, dtype=np.int32) - 1, codes, least)


def median(values: Any) -> float:
    """Return the median of at least one number, none NaN, as `np.median` does, without importing `numpy.ma`."""
    numbers = np.asarray(values)
    low, high = (len(numbers) - 1) // 2, len(numbers) // 2
    middle = np.partition(numbers, (low, high))
    return float(middle[high]) if low == high else (float(middle[low]) + float(middle[high])) / 2


def quantile(values: Any, share: float) -> float:
    """Return the interpolated quantile of at least one number, none NaN, as `np.quantile` does, without `numpy.ma`."""
    ascending = np.sort(np.asarray(values, np.float64))
    at = share * (len(ascending) - 1)
    below = int(at)
    low, high = float(ascending[below]), float(ascending[min(below + 1, len(ascending) - 1)])
    part = at - below
    return high - (high - low) * (1 - part) if part >= 0.5 else low + (high - low) * part


def largest(values: Int64, most: int) -> Bool:
    """Mark the `most` (at least 1) largest values, of equal ones the first; all where there are no more."""
    if len(values) <= most:
        return np.ones(len(values), np.bool_)
    least = np.partition(values, len(values) - most)[len(values) - most]
    mask: Bool = values > least
    mask[np.flatnonzero(values == least)[: most - int(mask.sum())]] = True
    return mask


def among(values: Any, wanted: Any) -> Bool:
    """Return which values are among the wanted ones, as `np.isin` does, without importing `numpy.ma`."""
    if not len(wanted):
        return np.zeros(len(values), np.bool_)
    ascending = np.sort(wanted)
    at = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    held: Bool = ascending[at] == values
    return held
