"""How numbers read: no figure says `0.0 times`."""

from __future__ import annotations

from syncscan.report.units import times
from tests.each import each


@each(
    ("per_step", "text"),
    [
        (1.0, "once per step"),
        (14.0, "14 times per step"),
        (2.5, "2.5 times per step"),
        (1 / 3, "0.3 times per step"),
        (1 / 24, "once every 24 steps"),
        (1 / 2400, "once every 2,400 steps"),
        (0.0, "0 times per step"),
    ],
)
def test_how_often_something_happens(per_step: float, text: str) -> None:
    """Rare events are given by the steps between them, as one decimal would round their rate to nothing."""
    assert times(per_step) == text
