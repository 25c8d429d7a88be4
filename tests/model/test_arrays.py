"""What numpy is slow at comes out as numpy has it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from syncscan.model.arrays import grouped, median, quantile

FLOATS = st.lists(st.floats(-1e12, 1e12), min_size=1)
INTS = st.lists(st.integers(-(1 << 53), 1 << 53), min_size=1)


@given(FLOATS | INTS)
def test_the_median_is_numpy_s(numbers: list[float]) -> None:
    """Of an odd and an even count, of floats and whole numbers, to the last bit."""
    assert median(numbers) == np.median(numbers)
    assert median(np.array(numbers)) == np.median(numbers)


@given(FLOATS | INTS, st.floats(0, 1))
def test_a_quantile_is_numpy_s(numbers: list[float], share: float) -> None:
    """Between two numbers as numpy interpolates, from the nearer of them."""
    assert quantile(numbers, share) == np.quantile(np.array(numbers, np.float64), share)


@given(st.lists(st.integers(-3, 5)))
def test_groups_are_the_places_of_each_value(values: list[int]) -> None:
    """Both ascending, in order or not; none of no values."""
    expected = [(value, [k for k, other in enumerate(values) if other == value]) for value in sorted(set(values))]
    assert [(value, places.tolist()) for value, places in grouped(np.array(values, np.int32))] == expected
