"""From a time to words, with three significant digits, the same in every report and in every evidence."""

from __future__ import annotations


def duration(us: float) -> str:
    """A time in µs with three significant digits and a fitting unit: `254 ms`, `6.3 µs`, `1.2 s`."""
    for size, unit in ((1e6, "s"), (1e3, "ms")):
        if abs(us) >= size:
            return f"{_three(us / size)} {unit}"
    return f"{_three(us)} µs"


def _three(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:.0f}"
    if abs(value) < 0.005:
        return "0"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
