"""From habits to a section of a terminal report, and to JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Any

from syncscan.model.finding import Phase
from syncscan.model.habit import Basis, Habit, Split, Stretch
from syncscan.model.printable import printable
from syncscan.report.units import duration, percent

SHOWN = 5
"""How many habits a report shows unasked."""
SHOWN_PARTS = 4
"""How many stretches of launches, and things in their way, a line names."""


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
        yield from (f"        {sentence}" for sentence in _graphs(habit, SHOWN_PARTS))
        yield f"        → {a.fix}"
        if verbose:
            yield f"        why: {a.why}"
            yield f"        fine when: {a.when_fine}"
            yield f"        id {habit.id}, confidence {habit.confidence.value}"
    if len(habits) > SHOWN and not verbose:
        yield f" … and {len(habits) - SHOWN} more with -v."


def _graphs(habit: Habit, most: int) -> Iterator[str]:
    """What CUDA graphs can hold of a step's launches, each with what it saves alone; and what stands between them."""
    if habit.stretches:
        yield "alone: " + _listed(map(_stretch, habit.stretches), most)
    if habit.splits:
        yield "in the way of one graph: " + _listed(map(_split, habit.splits), most)


def _listed(parts: Iterable[str], most: int) -> str:
    names = list(parts)
    more = f"; and {len(names) - most} more" if len(names) > most else ""
    return "; ".join(names[:most]) + more


def _stretch(stretch: Stretch) -> str:
    phase = "" if stretch.phase is Phase.OTHER else f"{stretch.phase.value}: "
    saved = f" saves {duration(stretch.gain.recoverable_us)}" if stretch.gain else ""
    end = f", up to {printable(stretch.ended_by, 60)}" if stretch.ended_by else ""
    return f"{phase}{stretch.launches:.0f} launches in {duration(stretch.host_us)}{saved}{end}"


def _split(split: Split) -> str:
    at = f" ({printable(f'{PurePath(split.source.file).name}:{split.source.line}', 60)})" if split.source else ""
    often = f", {split.per_step:.3g} a step" if round(split.per_step, 2) != 1 else ""
    return f"{printable(split.what, 90)}{at}{often}"


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
        "stretches": [_stretch_document(stretch) for stretch in h.stretches],
        "splits": [_split_document(split) for split in h.splits],
        "cost_us": h.cost_us,
        "recoverable_us": gain.recoverable_us if gain else None,
        "recoverable_range_us": list(gain.range_us) if gain else None,
        "basis": gain.basis.value if gain else None,
        "title": a.title,
        "why": a.why,
        "fix": a.fix,
        "when_fine": a.when_fine,
    }


def _stretch_document(stretch: Stretch) -> dict[str, Any]:
    gain = stretch.gain
    return {
        "phase": stretch.phase.value,
        "launches": stretch.launches,
        "host_us": stretch.host_us,
        "ended_by": stretch.ended_by,
        "recoverable_us": gain.recoverable_us if gain else None,
        "recoverable_range_us": list(gain.range_us) if gain else None,
    }


def _split_document(split: Split) -> dict[str, Any]:
    source = split.source
    return {
        "what": split.what,
        "file": source.file if source else None,
        "line": source.line if source else None,
        "finding": split.finding or None,
        "per_step": split.per_step,
        "us": split.us,
    }
