"""From habits to a section of a terminal report, and to JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from syncscan.model.habit import Basis, Habit
from syncscan.model.printable import printable
from syncscan.report.units import duration, percent

SHOWN = 5
"""How many habits a report shows unasked."""


def lines(habits: Sequence[Habit], step_us: float, verbose: int = 0) -> Iterator[str]:
    """The habits as text: one line each with what they would save, two more with evidence and fix.

    Args:
        habits: as found and projected, the largest gain first.
        step_us: the time of a step that the gains are parts of.
        verbose: 0 for the first few, 1 for all, with why and when each is fine.
    """
    if not habits:
        return
    yield "Besides syncs:"
    for habit in habits if verbose else habits[:SHOWN]:
        a = habit.advice
        place = f" (in {printable(habit.scope[-1], 40)})" if habit.scope else ""
        yield f" {habit.severity.value:6} {a.title}{place}: {saves(habit, step_us)}"
        yield f"        {printable('; '.join(habit.evidence), 240)}"
        yield f"        → {a.fix}"
        if verbose:
            yield f"        why: {a.why}"
            yield f"        fine when: {a.when_fine}"
            yield f"        id {habit.id}, confidence {habit.confidence.value}"
    if len(habits) > SHOWN and not verbose:
        yield f" … and {len(habits) - SHOWN} more with -v."


def saves(habit: Habit, step_us: float) -> str:
    """What the step would gain, in words: projected with its range, or at most; or that it spoils the measurement."""
    gain = habit.gain
    if gain is None:
        return "spoils the measurement"
    if gain.basis is Basis.UPPER_BOUND:
        return (
            f"at most {duration(gain.recoverable_us)} a step ({percent(gain.recoverable_us, step_us)}), not projected"
        )
    low, high = gain.range_us
    share = percent(gain.recoverable_us, step_us)
    return f"would save {duration(gain.recoverable_us)} a step ({share}; {duration(low)} to {duration(high)})"


def document(habits: Sequence[Habit]) -> list[dict[str, Any]]:
    """The habits as plain dicts and lists; all times in µs a step."""
    return [_habit(h) for h in habits]


def _habit(h: Habit) -> dict[str, Any]:
    a, gain = h.advice, h.gain
    return {
        "id": h.id,
        "rule": a.rule,
        "area": a.area.value,
        "severity": h.severity.value,
        "confidence": h.confidence.value,
        "scope": list(h.scope),
        "op": h.op,
        "per_step": h.per_step,
        "evidence": list(h.evidence),
        "cost_us": h.cost_us,
        "recoverable_us": gain.recoverable_us if gain else None,
        "recoverable_range_us": list(gain.range_us) if gain else None,
        "basis": gain.basis.value if gain else None,
        "title": a.title,
        "why": a.why,
        "fix": a.fix,
        "when_fine": a.when_fine,
    }
