"""Format a time with the digits that are known of it, alike in every report."""

from __future__ import annotations

import math

WIDE = 0.1
"""A range that spans more than this part of its upper end leaves a time within it two significant digits."""
_EXACT = 1e-6
"""Part of a last digit that is an error of the floating point, such as that of 0.29 × 100."""
_MOST = 2
"""Decimals at most: a time isn't known to less than a hundredth of a microsecond."""
_UNITS = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"))


def duration(us: float, digits: int = 3) -> str:
    """Return a time in µs with so many significant digits and a fitting unit: `254 ms`, `6.30 µs`, `1.20 s`."""
    size, unit, decimals = _scale(us, digits)
    return f"{_fixed(us / size, decimals)} {unit}"


def within(us: float, limits: tuple[float, float] | None) -> str:
    """Return a projected time, µs, with the digits that its range supports: `1.42 ms`, or `1.4 ms` in a wide one."""
    return duration(us, _digits(limits) if limits else 3)


def range_of(limits: tuple[float, float]) -> str:
    """Return a range in µs with the digits of a time within it, in one unit: `31.2 to 32.9 ms`, `0.7 to 2.4 ms`.

    The lower end is rounded down where a time close to it has more decimals, or that time would lie outside.
    """
    low, high = limits
    digits = _digits(limits)
    size, unit, decimals = _scale(max(limits, key=abs), digits)
    return f"{_lower_end(low / size, digits, decimals)} to {_fixed(high / size, decimals)} {unit}"


def _digits(limits: tuple[float, float]) -> int:
    low, high = limits
    return 2 if high - low > WIDE * abs(high) else 3


def _lower_end(value: float, digits: int, decimals: int) -> str:
    """Return the lower end of a range: with a single digit where the decimals of the upper end would leave nothing."""
    if _decimals(value, digits) <= decimals:
        return _fixed(value, decimals)
    known = decimals if _floor(value, decimals) else min(_MOST, _decimals(value, 1))
    return _fixed(_floor(value, known), known)


def _floor(value: float, decimals: int) -> float:
    size = 10.0**decimals
    return math.floor(value * size + _EXACT) / size


def _scale(us: float, digits: int) -> tuple[float, str, int]:
    """Return the size and name of a time's unit, and the decimals that so many significant digits leave in it."""
    rounded = float(f"{us:.{digits}g}")
    size, unit = next(((size, unit) for size, unit in _UNITS if abs(rounded) >= size), _UNITS[-1])
    return size, unit, min(_MOST, _decimals(rounded / size, digits))


def _decimals(value: float, digits: int) -> int:
    return digits - 1 - math.floor(math.log10(abs(value))) if value else 0


def _fixed(value: float, decimals: int) -> str:
    """Return a number rounded to so many decimals: negative ones are zeros before the point."""
    rounded = round(value, decimals)
    return f"{rounded:.{max(decimals, 0)}f}" if rounded else "0"
