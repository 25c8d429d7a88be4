"""Describe habits in words: cost, evidence, and what to do instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

import msgspec

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Severity
from syncscan.model.habit import Basis, Habit, Split
from syncscan.report.phrases import figure, spread

SHOWN = 5
"""Habits that a report shows by default."""
SHOWN_PARTS = 4
"""Things between launches that a line names."""
TITLE = "Other costs"


class HabitText(msgspec.Struct, frozen=True, kw_only=True):
    """A habit in words; names are as recorded, unescaped."""

    id: str
    rule: str
    severity: Severity
    title: str
    where: str
    """Innermost scope; empty without one."""
    basis: Basis | None
    """Basis of the gain; None where the habit distorts a measurement instead of taking time."""
    saves: str
    """Gain in words, e.g. `2.55 ms (57%)`, or that the habit distorts the measurement."""
    doubt: str
    """Range of the gain; empty where there is no doubt."""
    evidence: str
    splits: tuple[str, ...]
    """Reasons against a single CUDA graph for the step."""
    why: str
    fix: str
    when_fine: str
    confidence: str

    @property
    def name(self) -> str:
        return f"{self.title} ({self.where})" if self.where else self.title


def describe(analysis: Analysis, step_us: float) -> tuple[HabitText, ...]:
    return tuple(_habit_text(habit, step_us) for habit in analysis.shown.habits)


def _habit_text(habit: Habit, step_us: float) -> HabitText:
    advice, gain = habit.advice, habit.gain
    return HabitText(
        id=habit.id,
        rule=advice.rule,
        severity=habit.severity,
        title=advice.title,
        where="".join(habit.scope[-1:]),
        basis=gain.basis if gain else None,
        saves=figure(gain.recoverable_us, gain.basis, step_us, gain.range_us) if gain else "distorts the measurement",
        doubt=""
        if gain is None
        else "not projected"
        if gain.basis is Basis.UPPER_BOUND
        else spread(gain.range_us, step_us),
        evidence="; ".join(habit.evidence),
        splits=tuple(map(_split, habit.splits)),
        why=advice.why,
        fix=advice.fix,
        when_fine=advice.when_fine,
        confidence=habit.confidence.value,
    )


def facts(habit: HabitText) -> list[tuple[str, str]]:
    return [
        ("evidence", habit.evidence),
        *graphs(habit),
        ("why", habit.why),
        ("fix", habit.fix),
        ("fine", habit.when_fine),
    ]


def graphs(habit: HabitText, most: int = SHOWN_PARTS) -> Iterator[tuple[str, str]]:
    """Yield what separates the CUDA graphs that can hold a step's launches, with its label."""
    if habit.splits:
        yield "prevents a single graph", _list_text(habit.splits, most)


def _list_text(names: Sequence[str], most: int) -> str:
    more = f"; and {len(names) - most} more" if len(names) > most else ""
    return "; ".join(names[:most]) + more


def _split(split: Split) -> str:
    at = f" ({PurePath(split.source.file).name}:{split.source.line})" if split.source else ""
    often = f", {split.per_step:.3g} per step" if round(split.per_step, 2) != 1 else ""
    return f"{split.what}{at}{often}"
