"""Check a given or stored step time against the nearest that the replay reaches."""

from __future__ import annotations

from syncscan.errors import UsageError
from syncscan.model.duration import duration

DOUBTED, REFUSED = 1.1, 1.5
"""Factors between a time and the nearest replayed one from which it is doubted, and refused if a user gave it. Of the
times that capture stored in 60 recordings, the replay reaches all within 2 %, except one whose recorded steps took half
of the time of the others (1.35)."""


def doubt(known_ns: float, nearest_ns: float, recorded_ns: float) -> str:
    """Return what is doubtful about this time of a step; empty if nothing is.

    Args:
        known_ns: the step's time without the profiler, given or stored.
        nearest_ns: the replayed step's time at the nearest plausible scales.
        recorded_ns: the step's time in the trace.
    """
    if _off(known_ns, nearest_ns) < DOUBTED:
        return ""
    return f"Doubtful: {_comparison(known_ns, nearest_ns, recorded_ns)}. Results based on it may be off by as much."


def refuse(known_ns: float, nearest_ns: float, recorded_ns: float) -> None:
    """Refuse a user's time that can't be the recorded step's; arguments as for `doubt`.

    Raises:
        UsageError: the recorded step can't take that long.
    """
    if _off(known_ns, nearest_ns) >= REFUSED:
        raise UsageError(
            f"This can't be right: {_comparison(known_ns, nearest_ns, recorded_ns)}.",
            "Give the time of one step in ms (see the end of a report for what counts as a step), or omit it.",
        )


def _off(known_ns: float, nearest_ns: float) -> float:
    """Return the ratio of the larger to the smaller; 1 if there is nothing to compare."""
    least, most = sorted((known_ns, nearest_ns))
    return most / least if least > 0 else 1.0


def _comparison(known_ns: float, nearest_ns: float, recorded_ns: float) -> str:
    limit = "at least" if known_ns < nearest_ns else "at most"
    known, nearest, recorded = (duration(ns / 1e3) for ns in (known_ns, nearest_ns, recorded_ns))
    replayed = f"in the trace it takes {recorded}, and a replay takes {limit} {nearest}"
    return f"a step should take {known} without the profiler; {replayed}"
