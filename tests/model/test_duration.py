"""How times read: with the digits that are known."""

from __future__ import annotations

import pytest

from syncscan.model.duration import duration, range_of, within
from tests.each import each


@pytest.mark.parametrize(
    ("us", "text"),
    [(254_300.0, "254 ms"), (1_234_000.0, "1.23 s"), (6.3, "6.30 µs"), (999.6, "1.00 ms"), (0.001, "0 µs")],
)
def test_a_time_has_three_digits(us: float, text: str) -> None:
    """One that rounds to a thousand has the next unit."""
    assert duration(us) == text


@each(
    ("us", "limits", "text"),
    [
        (1_420.0, (1_400.0, 1_450.0), "1.42 ms"),
        (1_420.0, None, "1.42 ms"),
        (1_420.0, (747.0, 2_430.0), "1.4 ms"),
        (718.0, (0.0, 3_980.0), "720 µs"),
        (996.0, (500.0, 1_500.0), "1.0 ms"),
        (-1_420.0, (-2_000.0, -1_000.0), "-1.4 ms"),
        (0.7, (0.0, 1.0), "0.70 µs"),
        (0.0, (0.0, 1.0), "0 µs"),
    ],
)
def test_a_wide_range_leaves_a_time_two_digits(us: float, limits: tuple[float, float] | None, text: str) -> None:
    """Its range is wide if it spans more than a tenth of its upper end."""
    assert within(us, limits) == text


@each(
    ("limits", "text"),
    [
        ((747.0, 2_430.0), "0.7 to 2.4 ms"),
        ((44.0, 2_430.0), "0.04 to 2.4 ms"),
        ((11_200.0, 13_900.0), "11 to 14 ms"),
        ((110_000.0, 1_200_000.0), "0.1 to 1.2 s"),
        ((31_200.0, 32_900.0), "31.2 to 32.9 ms"),
        ((3_190.0, 4_890.0), "3.2 to 4.9 ms"),
        ((8_600.0, 10_600.0), "8 to 11 ms"),
        ((0.29, 0.6), "0.29 to 0.60 µs"),
        ((0.0, 312.0), "0 to 310 µs"),
        ((-500.0, 2_430.0), "-0.5 to 2.4 ms"),
    ],
)
def test_both_ends_of_a_range_have_one_unit(limits: tuple[float, float], text: str) -> None:
    """They have as many digits as the time between them; the lower one has at least one."""
    assert range_of(limits) == text
