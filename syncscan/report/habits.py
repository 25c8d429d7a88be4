"""From habits to what a report says of each: what it costs, what proves it, what to do instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

import msgspec

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Phase, Severity
from syncscan.model.habit import Basis, Habit, Segment, Split
from syncscan.report.phrases import figure, spread
from syncscan.report.units import duration

SHOWN = 5
"""How many habits a report shows unasked."""
SHOWN_PARTS = 4
"""How many segments of launches, and things in their way, a line names."""
TITLE = "Besides syncs"


class ToldSplit(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in the way of one graph."""

    text: str
    finding: int | None
    """The place among the findings of the sync that it is, from 0."""


class ToldHabit(msgspec.Struct, frozen=True, kw_only=True):
    """What a report says of a habit. Names in it are as they stand in the trace."""

    id: str
    rule: str
    severity: Severity
    title: str
    where: str
    """The innermost scope; empty without."""
    basis: Basis | None
    """None where it spoils a measurement instead of taking time."""
    saves: str
    """`2.55 ms (57%)`, or that it spoils the measurement."""
    doubt: str
    """Between which limits; empty where there is nothing to doubt."""
    evidence: str
    segments: tuple[str, ...]
    """Launches that graphs can hold, each with what it saves alone."""
    splits: tuple[ToldSplit, ...]
    why: str
    fix: str
    when_fine: str
    confidence: str

    @property
    def name(self) -> str:
        """What and where."""
        return f"{self.title} ({self.where})" if self.where else self.title


def told(analysis: Analysis, step_us: float) -> tuple[ToldHabit, ...]:
    """The habits in their order.

    Args:
        analysis: with its habits.
        step_us: the time of a step that the gains are parts of.
    """
    numbers = {f.id: number for number, f in enumerate(analysis.findings)}
    return tuple(_told(habit, step_us, numbers) for habit in analysis.shown.habits)


def _told(habit: Habit, step_us: float, numbers: dict[str, int]) -> ToldHabit:
    a, gain = habit.advice, habit.gain
    return ToldHabit(
        id=habit.id,
        rule=a.rule,
        severity=habit.severity,
        title=a.title,
        where="".join(habit.scope[-1:]),
        basis=gain.basis if gain else None,
        saves=figure(gain.recoverable_us, gain.basis, step_us) if gain else "spoils the measurement",
        doubt=""
        if gain is None
        else "not projected"
        if gain.basis is Basis.UPPER_BOUND
        else spread(gain.range_us, step_us),
        evidence="; ".join(habit.evidence),
        segments=tuple(map(_segment, habit.segments)),
        splits=tuple(ToldSplit(text=_split(s), finding=numbers.get(s.finding)) for s in habit.splits),
        why=a.why,
        fix=a.fix,
        when_fine=a.when_fine,
        confidence=habit.confidence.value,
    )


def facts(habit: ToldHabit) -> list[tuple[str, str]]:
    """What proves it, why it costs time, what to do and when it is fine, each with its name."""
    return [
        ("evidence", habit.evidence),
        *graphs(habit),
        ("why", habit.why),
        ("fix", habit.fix),
        ("fine", habit.when_fine),
    ]


def graphs(habit: ToldHabit, most: int = SHOWN_PARTS) -> Iterator[tuple[str, str]]:
    """What CUDA graphs can hold of a step's launches, and what stands between them, each with its name."""
    if habit.segments:
        yield "alone", _listed(habit.segments, most)
    if habit.splits:
        yield "in the way of one graph", _listed([split.text for split in habit.splits], most)


def _listed(names: Sequence[str], most: int) -> str:
    more = f"; and {len(names) - most} more" if len(names) > most else ""
    return "; ".join(names[:most]) + more


def _segment(segment: Segment) -> str:
    phase = "" if segment.phase is Phase.OTHER else f"{segment.phase.value}: "
    saved = f" saves {duration(segment.gain.recoverable_us)}" if segment.gain else ""
    end = f", up to {segment.ended_by}" if segment.ended_by else ""
    return f"{phase}{segment.launches:.0f} launches in {duration(segment.host_us)}{saved}{end}"


def _split(split: Split) -> str:
    at = f" ({PurePath(split.source.file).name}:{split.source.line})" if split.source else ""
    often = f", {split.per_step:.3g} a step" if round(split.per_step, 2) != 1 else ""
    return f"{split.what}{at}{often}"
