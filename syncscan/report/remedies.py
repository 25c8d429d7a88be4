"""From remedies to one numbered list in words, and to JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from syncscan.model.analysis import Analysis
from syncscan.model.habit import Basis
from syncscan.model.remedy import Remedy
from syncscan.report import phrases
from syncscan.report.units import duration, percent

SHOWN = 5
"""How many remedies a report lists unasked."""


def lines(analysis: Analysis, most: int = SHOWN) -> Iterator[str]:
    """What to change, the largest gain first, a line each; nothing where there is only one thing, which stands above.

    Args:
        analysis: with its remedies.
        most: how many are named; the rest are counted.
    """
    found = analysis.remedies
    if len(found) < 2:
        return
    yield "What to change, by what it gains; the second figure is what is left of that after those above:"
    for number, remedy in enumerate(found[:most], 1):
        yield f" {number}. {_what(analysis, remedy)}: {_gains(remedy, phrases.replayed(analysis.step), number == 1)}"
    if len(found) > most:
        yield f" … and {len(found) - most} more."


def _what(analysis: Analysis, remedy: Remedy) -> str:
    if remedy.habit:
        return f"{remedy.what} ({remedy.habit.rpartition('-')[0]})"
    first = analysis.finding(remedy.findings[0])
    place = phrases.places(first.where)
    more = f" and {len(remedy.findings) - 1} more syncs together" if len(remedy.findings) > 1 else ""
    return f"{phrases.what(first)}{f' at {place}' if place else ''}{more}"


def _gains(remedy: Remedy, step_us: float, first: bool) -> str:
    alone = f"{duration(remedy.alone_us)} ({percent(remedy.alone_us, step_us)})"
    if remedy.basis is Basis.UPPER_BOUND:
        return f"at most {alone}, not projected"
    low, high = remedy.range_us
    doubt = "" if remedy.confidence.value == "high" else f", confidence {remedy.confidence.value}"
    left = "" if first or remedy.after_us is None else f"; {_left(remedy.after_us)}"
    return f"{alone}, {duration(low)} to {duration(high)}{doubt}{left}"


def _left(after_us: float) -> str:
    return f"then {duration(after_us)}" if after_us else "then nothing that can be measured"


def document(found: Sequence[Remedy]) -> list[dict[str, Any]]:
    """The remedies as plain dicts and lists; all times in µs a step."""
    return [
        {
            "findings": list(r.findings),
            "habit": r.habit or None,
            "what": r.what,
            "alone_us": r.alone_us,
            "range_us": list(r.range_us),
            "after_us": r.after_us,
            "basis": r.basis.value,
            "confidence": r.confidence.value,
        }
        for r in found
    ]
