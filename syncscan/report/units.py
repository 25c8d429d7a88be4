"""Format numbers: times, shares, frequencies."""

from __future__ import annotations

import math

from syncscan.model.duration import duration, range_of, within

_SELDOM = 0.095
"""Frequency per step below which the number of steps per occurrence is shown instead of a decimal."""


def part_of(us: float, whole: str) -> str:
    """Return a time in the unit and precision of the whole, without the unit: `5.9` of `14.3 ms`."""
    number, unit = whole.removeprefix("about ").split()[:2]
    size = {"s": 1e6, "ms": 1e3, "µs": 1.0}[unit]
    return f"{us / size:.{len(number.partition('.')[2])}f}"


def percent(part: float, total: float) -> str:
    """Return `part` of `total` as a percentage: `31%`, `0.4%`, `<0.1%`; `–` if the whole is 0."""
    if not total:
        return "–"
    share = 100 * part / total
    if 0 < share < 0.05:
        return "<0.1%"
    return f"{share:.0f}%" if abs(share) >= 2 or share == 0 else f"{share:.1f}%"


def times(per_step: float) -> str:
    """Return a frequency: `once per step`, `14 times per step`, `0.3 times per step`, `once every 24 steps`."""
    if abs(per_step - 1) < 0.005:
        return "once per step"
    if 0 < per_step < _SELDOM:
        return f"once every {1 / per_step:,.0f} steps"
    return (
        f"{per_step:.0f} times per step"
        if per_step >= 10 or per_step == int(per_step)
        else f"{per_step:.1f} times per step"
    )


# a step's time in a state


_UNITS = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"))


def time_with_range(us: float, limits: tuple[float, float], base: float) -> str:
    """Return a time of a step of `base`: `11.7 ms (10.6 to 12.8)`."""
    time, between = time_and_range(us, limits, base)
    return f"{time} ({between})" if between else time


def time_and_range(us: float, limits: tuple[float, float], base: float) -> tuple[str, str]:
    """Return a time with its unit, and its range without, with the digits that the range supports."""
    _, unit, _ = _digits(limits, base)
    low, high = (in_unit_of(limit, limits, base) for limit in limits)
    return f"{in_unit_of(us, limits, base)} {unit}", f"{low} to {high}" if low != high else ""


def in_unit_of(us: float, limits: tuple[float, float], base: float) -> str:
    """Return a time in the unit of the step of `base`, without it, with the digits that its range supports."""
    size, _, decimals = _digits(limits, base)
    return f"{us / size:.{decimals}f}"


def _digits(limits: tuple[float, float], base: float) -> tuple[float, str, int]:
    """Return the unit of the step, and the decimals of a time: its last digit is at most a tenth of the range's width.

    At most three digits are most of the step itself.
    """
    size, unit = next(((size, unit) for size, unit in _UNITS if base >= size), _UNITS[-1])
    most = 2 - math.floor(math.log10(base / size)) if base else 0
    width = (limits[1] - limits[0]) / size
    decimals = -math.floor(math.log10(width / 10)) if width > 0 else most
    return size, unit, max(0, min(decimals, most))


__all__ = [
    "duration",
    "in_unit_of",
    "part_of",
    "percent",
    "range_of",
    "time_and_range",
    "time_with_range",
    "times",
    "within",
]
