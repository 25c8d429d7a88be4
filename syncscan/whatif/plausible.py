"""From a step's time without the profiler, and the nearest that a replay reaches, to a doubt or an error."""

from __future__ import annotations

from syncscan.errors import UsageError

DOUBTED, REFUSED = 1.1, 1.5
"""A time that is so many times longer, or shorter, than the nearest that the replay reaches is doubted, and refused
where a user gave it. Of the times that captures stored in 60 recordings the replay reaches all within 2 %, but for one
whose recorded steps took half of the time of the others (1.35)."""


def doubt(known_ns: float, nearest_ns: float, recorded_ns: float) -> str:
    """What is doubtful about this time of a step; empty where nothing is.

    Args:
        known_ns: the step's time without the profiler, as given or stored.
        nearest_ns: what the replay of the step as it was takes, with the scales that come nearest to that.
        recorded_ns: what the step takes in the trace.
    """
    if _off(known_ns, nearest_ns) < DOUBTED:
        return ""
    return f"Doubtful: {_said(known_ns, nearest_ns, recorded_ns)}. What rests on it may be as far off."


def refuse(known_ns: float, nearest_ns: float, recorded_ns: float) -> None:
    """Refuse a time that a user gave, where it can't be the recorded step's; arguments as for `doubt`.

    Raises:
        UsageError: the recorded step can't take that.
    """
    if _off(known_ns, nearest_ns) >= REFUSED:
        raise UsageError(
            f"This can't be right: {_said(known_ns, nearest_ns, recorded_ns)}.",
            "Give the time of one step, in ms: the end of a report says what counts as one. Or leave it out.",
        )


def _off(known_ns: float, nearest_ns: float) -> float:
    """How many times one is the other; 1 where there is nothing to compare."""
    least, most = sorted((known_ns, nearest_ns))
    return most / least if least > 0 else 1.0


def _said(known_ns: float, nearest_ns: float, recorded_ns: float) -> str:
    limit = "at least" if known_ns < nearest_ns else "at most"
    recorded = f"in the trace it takes {_ms(recorded_ns)}, and by what it does then {limit} {_ms(nearest_ns)}"
    return f"a step is said to take {_ms(known_ns)} without the profiler; {recorded}"


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.3g} ms"
