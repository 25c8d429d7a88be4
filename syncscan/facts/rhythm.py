"""From the times of a program's steps to the number of steps after which they repeat."""

from __future__ import annotations

from collections.abc import Sequence

MOST = 8
"""The longest period that is looked for: micro-batches and optimizers in turn; what comes more rarely is a phase."""
UNEVEN = 0.25
"""Steps of a period differ by at least this part of the median step; steps that lie closer together are all alike."""
LEFT = 0.5
"""A period counts where knowing a step's place in it leaves at most this part of what the steps differ by. Of random
times that vary by a third, of 900 loops of 12 to 48 steps 7 do, all of 12."""
LOOKED = 240
"""Of more steps the last so many are looked at."""
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
    times = times[-LOOKED:]
    whole = median(times)
    for period in range(2, min(MOST, len(times) // ROUNDS) + 1):
        expected = places(times, period)
        spread = max(expected) - min(expected)
        if spread > UNEVEN * whole and _away(times, period, spread) <= LEFT * _away(times, 1, spread):
            return period
    return 1


def places(times: Sequence[float], period: int) -> list[float]:
    """Return the median time of each of a period's steps, the first one's first.

    Args:
        times: of steps in a row, at least as many as the period has.
        period: in steps.
    """
    return [median(times[place::period]) for place in range(period)]


def _away(times: Sequence[float], period: int, most: float) -> float:
    """The mean distance of each time from the median of the others in its place, none counted for more than `most`.

    Without the time itself: a median that it is part of is near it, whatever it is.
    """
    away = 0.0
    for place in range(period):
        own = times[place::period]
        away += sum(min(most, abs(time - median([*own[:k], *own[k + 1 :]]))) for k, time in enumerate(own))
    return away / len(times)
