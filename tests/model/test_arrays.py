"""Functions that replace slow ones of numpy give numpy's results."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan.model import arrays
from syncscan.model.arrays import grouped, largest, looked_up, median, numbered, numbered_pairs, quantile, summed

FLOATS = st.lists(st.floats(-1e12, 1e12), min_size=1)
INTS = st.lists(st.integers(-(1 << 53), 1 << 53), min_size=1)


@given(FLOATS | INTS)
def test_the_median_is_numpy_s(numbers: list[float]) -> None:
    """It does so for odd and even counts, for floats and whole numbers, to the last bit."""
    assert median(numbers) == np.median(numbers)
    assert median(np.array(numbers)) == np.median(numbers)


@given(FLOATS | INTS, st.floats(0, 1))
def test_a_quantile_is_numpy_s(numbers: list[float], share: float) -> None:
    """Between two numbers as numpy interpolates, from the nearer of them."""
    assert quantile(numbers, share) == np.quantile(np.array(numbers, np.float64), share)


@given(st.lists(st.integers(-3, 5)), st.integers(1, 9))
def test_the_largest_are_the_first_of_a_stable_order(values: list[int], most: int) -> None:
    """As many as asked for, or all; of equal values the first."""
    first = sorted(range(len(values)), key=lambda at: -values[at])[:most]
    assert np.flatnonzero(largest(np.array(values, np.int64), most)).tolist() == sorted(first)


@given(st.lists(st.integers(-3, 5)))
def test_groups_are_the_places_of_each_value(values: list[int]) -> None:
    """Both ascending, in order or not; none of no values."""
    expected = [(value, [k for k, other in enumerate(values) if other == value]) for value in sorted(set(values))]
    assert [(value, places.tolist()) for value, places in grouped(np.array(values, np.int32))] == expected


NUMBERS = st.integers(-3, 9) | st.integers(-(1 << 31), (1 << 31) - 1)


@given(st.lists(st.tuples(NUMBERS, NUMBERS)))
def test_pairs_are_numbered_as_numpy_numbers_rows(pairs: list[tuple[int, int]]) -> None:
    """Close together or as far apart as 32 bits go, in both columns: the pairs ascending, and each place's number."""
    columns = np.array(pairs, np.int32).reshape(-1, 2)
    known, which = numbered_pairs(columns[:, 0].copy(), columns[:, 1].copy())
    assert list(map(tuple, known.tolist())) == sorted(set(pairs))
    assert known[which].tolist() == columns.tolist()


@given(st.lists(st.integers(-(1 << 62), 1 << 62) | st.integers(-5, 5)))
def test_numbers_are_numbered_as_numpy_does(codes: list[int]) -> None:
    """By a table where they lie close together, else in order."""
    known, which = numbered(np.array(codes, np.int64))
    assert known.tolist() == sorted(set(codes))
    assert known[which].tolist() == codes


@given(st.lists(st.tuples(st.integers(-(1 << 40), 1 << 40), st.integers(0, 4)), max_size=40), st.integers(1, 7))
def test_sums_and_look_ups_of_blocks_are_those_of_the_whole(rows: list[tuple[int, int]], block: int) -> None:
    """However long the blocks are that a column is worked on in."""
    column, which = np.array(rows, np.int64).reshape(-1, 2).T
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "_BLOCK", block)
        assert summed(column, which, 5).tolist() == [sum(c for c, w in rows if w == k) for k in range(5)]
        assert looked_up(np.arange(50, 60), which, -5).tolist() == [55 + w for w in which.tolist()]
