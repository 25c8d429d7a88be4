"""Find the number of steps after which the times of a program's steps repeat."""

from __future__ import annotations

from collections.abc import Sequence

MOST = 8
"""Longest period searched for, as of micro-batches and alternating optimizers; rarer events are phases."""
UNEVEN = 0.25
"""Least difference within a period, as a part of the median step; below it all steps are alike."""
LEFT = 0.5
"""A period counts if knowing a step's place in it leaves at most this part of the steps' variation. Of 900 loops of 12
to 48 steps with random times that vary by a third, 7 show a period, all with 12 steps."""
LOOKED = 240
"""Number of last steps that are examined."""
ROUNDS = 3
"""Least number of times that a period must fit in the steps."""


def median(values: Sequence[float]) -> float:
    """Return the median of the values.

    `statistics` isn't used, as its import takes 10 ms.
    """
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def period_of(times: Sequence[float]) -> int:
    """Return the smallest number of steps after which step times repeat; 1 if they are alike or show no period.

    A few much longer ones don't matter, as medians decide.
    """
    if len(times) < 2 * ROUNDS:
        return 1
    times = times[-LOOKED:]
    typical = median(times)
    for period in range(2, min(MOST, len(times) // ROUNDS) + 1):
        expected = places(times, period)
        spread = max(expected) - min(expected)
        if spread > UNEVEN * typical and _away(times, period, spread) <= LEFT * _away(times, 1, spread):
            return period
    return 1


def places(times: Sequence[float], period: int) -> list[float]:
    return [median(times[place::period]) for place in range(period)]


def _away(times: Sequence[float], period: int, most: float) -> float:
    """Return the mean distance of each time from the median of the others in its place, each limited to `most`.

    The time itself is left out, since a median that includes it is always near it.
    """
    away = 0.0
    for place in range(period):
        own = times[place::period]
        away += sum(min(most, abs(time - median([*own[:k], *own[k + 1 :]]))) for k, time in enumerate(own))
    return away / len(times)
