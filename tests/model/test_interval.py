"""Intervals hold their begin and not their end; unions are disjoint, ascending, and cover the same times."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from syncscan.model.interval import Interval, union_of

INTERVALS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)).map(lambda p: Interval(p[0], p[0] + p[1])))


def test_an_interval_holds_its_begin_and_not_its_end() -> None:
    """So that of two steps in a row one holds the time between them."""
    interval = Interval(10, 20)
    assert [interval.holds(ts) for ts in (9, 10, 19, 20)] == [False, True, True, False]
    assert interval.length == 10


def test_a_slice_touches_an_interval_up_to_its_edges() -> None:
    """What ends where it begins is shown with it."""
    interval = Interval(10, 20)
    assert [interval.touches(*s) for s in ((0, 9), (0, 10), (12, 13), (20, 30), (21, 30))] == [
        False, True, True, True, False,
    ]  # fmt: skip


def test_intervals_that_touch_are_one() -> None:
    """No seam is left between them."""
    assert union_of([Interval(5, 9), Interval(0, 5), Interval(20, 21)]) == [Interval(0, 9), Interval(20, 21)]
    assert union_of([]) == []


@given(INTERVALS)
def test_a_union_covers_what_its_intervals_cover(intervals: list[Interval]) -> None:
    """Against counting unit by unit."""
    covered = {ts for interval in intervals for ts in range(*interval)}
    union = union_of(intervals)
    assert {ts for interval in union for ts in range(*interval)} == covered
    assert all(a.end < b.begin for a, b in itertools.pairwise(union))
