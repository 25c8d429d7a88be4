"""From the times of a program's steps to the number of steps after which they repeat."""

from __future__ import annotations

from collections.abc import Sequence

MOST = 8
"""The longest period that is looked for: micro-batches and optimizers in turn; what comes more rarely is a phase."""
UNEVEN = 0.15
"""Steps whose times lie closer together than this part of their median are all alike, by the median deviation."""
EXPLAINED = 0.4
"""A period counts where the deviation within its places is at most this part of the deviation without it. Of random
times alike a period of two leaves 0.8 to 1.1 of it with twelve steps."""
ROUNDS = 3
"""A period is looked for where it can have come at least this often."""


def median(values: Sequence[float]) -> float:
    """The middle of the values, the mean of the two middle ones where their number is even.

    Not by `statistics`, which takes 10 ms to import.
    """
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def period_of(times: Sequence[float]) -> int:
    """Return the smallest number of steps after which the steps' times repeat; 1 where they are all alike, or no period
    shows.

    Args:
        times: of steps in a row, in any unit. A few that are much longer don't matter: medians decide.
    """
    if len(times) < 2 * ROUNDS:
        return 1
    whole = median(times)
    without = _deviation(times, [whole] * len(times))
    if without <= UNEVEN * whole:
        return 1
    for period in range(2, min(MOST, len(times) // ROUNDS) + 1):
        if _deviation(times, _repeated(places(times, period), len(times))) <= EXPLAINED * without:
            return period
    return 1


def places(times: Sequence[float], period: int) -> list[float]:
    """Return the median time of each of a period's steps, the first one's first.

    Args:
        times: of steps in a row, at least as many as the period has.
        period: in steps.
    """
    return [median(times[place::period]) for place in range(period)]


def _repeated(values: Sequence[float], count: int) -> list[float]:
    return [values[k % len(values)] for k in range(count)]


def _deviation(times: Sequence[float], expected: Sequence[float]) -> float:
    """The median distance of the times from what is expected of them; the mean of the smaller 75 % where half fits.

    A step in two that differs leaves a median of 0 around the other half's time: more than half have to fit.
    """
    away = sorted(abs(time - other) for time, other in zip(times, expected, strict=True))
    most = away[: max(1, (3 * len(away)) // 4)]
    return sum(most) / len(most)
