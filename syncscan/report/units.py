"""Format numbers: times, shares, frequencies."""

from __future__ import annotations

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


__all__ = ["duration", "part_of", "percent", "range_of", "times", "within"]
