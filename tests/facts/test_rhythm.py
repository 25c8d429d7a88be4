"""After how many steps a program's steps repeat, told from their times alone."""

from __future__ import annotations

import random

import pytest

from syncscan.facts.rhythm import median, period_of, places


def around(pattern: list[float], steps: int, noise: float = 0.05) -> list[float]:
    """Times that repeat like this, each off by some per cent, one in twenty by much more."""
    drawn = random.Random(0)
    times = [pattern[k % len(pattern)] * (1 + noise * drawn.uniform(-1, 1)) for k in range(steps)]
    return [time * 5 if k % 20 == 13 else time for k, time in enumerate(times)]


@pytest.mark.parametrize("pattern", [[7.0], [7.0, 21.0], [10.0, 10.0, 30.0], [5.0, 5.0, 5.0, 25.0], [1.0] * 7 + [4.0]])
def test_a_period_is_its_smallest(pattern: list[float]) -> None:
    """One step's time, two in turn, one in three, four and eight that is longer."""
    assert period_of(around(pattern, 48)) == len(pattern)


def test_noise_is_no_period() -> None:
    """None of a hundred loops whose steps vary by a third at random repeats."""
    drawn = random.Random(1)
    assert all(period_of([drawn.uniform(10, 16) for _ in range(24)]) == 1 for _ in range(100))


def test_too_few_steps_show_no_period() -> None:
    """Twice is chance."""
    assert period_of([7.0, 21.0] * 2) == 1


def test_the_places_of_a_period_have_a_time_each() -> None:
    """The median, so that a pause in one doesn't matter."""
    assert places([7.0, 21.0, 7.0, 21.0, 99.0, 21.0], 2) == [7.0, 21.0]
    assert median([3.0, 1.0, 2.0, 10.0]) == 2.5
