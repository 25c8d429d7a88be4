"""Format a time with three significant digits, alike in every report."""

from __future__ import annotations


def duration(us: float) -> str:
    """Return a time in µs with three significant digits and a fitting unit: `254 ms`, `6.3 µs`, `1.2 s`."""
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
