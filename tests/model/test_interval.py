"""Intervals hold their begin and not their end; unions are disjoint, ascending, and cover the same times."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from syncscan.model.interval import Cover, Interval, cover_of

INTERVALS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)).map(lambda p: Interval(p[0], p[0] + p[1])))


def test_an_interval_holds_its_begin_and_not_its_end() -> None:
    """So that of two steps in a row one holds the time between them."""
    interval = Interval(10, 20)
    assert [interval.holds(ts) for ts in (9, 10, 19, 20)] == [False, True, True, False]
    assert interval.length == 10


def test_a_slice_touches_an_interval_up_to_its_edges() -> None:
    """A slice that ends where the interval begins touches it."""
    interval = Interval(10, 20)
    assert [interval.touches(*s) for s in ((0, 9), (0, 10), (12, 13), (20, 30), (21, 30))] == [
        False, True, True, True, False,
    ]  # fmt: skip


def test_intervals_that_touch_are_one() -> None:
    """No seam is left between them."""
    assert cover_of([Interval(5, 9), Interval(0, 5), Interval(20, 21)]).intervals == [Interval(0, 9), Interval(20, 21)]
    assert cover_of([]).intervals == []


@given(INTERVALS)
def test_a_union_covers_what_its_intervals_cover(intervals: list[Interval]) -> None:
    """Against counting unit by unit."""
    covered = {ts for interval in intervals for ts in range(*interval)}
    union = cover_of(intervals).intervals
    assert {ts for interval in union for ts in range(*interval)} == covered
    assert all(a.end < b.begin for a, b in itertools.pairwise(union))


PAIRS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=6)


def cover(pairs: list[tuple[int, int]]) -> Cover:
    return cover_of([Interval(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]])


def moments(pairs: list[tuple[int, int]]) -> set[int]:
    return {t for pair in pairs for t in range(min(pair), max(pair))}


@given(PAIRS, PAIRS, PAIRS)
def test_a_cover_counts_each_moment_once(
    held: list[tuple[int, int]], out: list[tuple[int, int]], queries: list[tuple[int, int]]
) -> None:
    """How much of an interval others cover, and what is left of them without some, are sets of moments."""
    left = moments(held) - moments(out)
    remaining = cover(held).without(cover(out))
    begins, ends = (np.array([pair[k] for pair in sorted(queries)], np.int64) for k in (0, 1))
    assert remaining.length == len(left)
    assert remaining.within(begins, ends).tolist() == [len(left & set(range(*pair))) for pair in sorted(queries)]
    assert remaining.holds(np.arange(41)).tolist() == [t in left for t in range(41)]
