"""Build the habits' part of the JSON report."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from syncscan.model.finding import Confidence, Phase, Severity
from syncscan.model.habit import Area, Basis, Habit, Segment, Split
from syncscan.report.document import Range, about


class SegmentDocument(Struct, frozen=True):
    """Launches that one CUDA graph can contain."""

    phase: Phase
    launches: float
    host_us: Annotated[float, about("from the start of the first to the end of the last")]
    ended_by: Annotated[str, about("what ends it; empty for the next phase or the end of the step")]
    recoverable_us: float | None
    recoverable_range_us: Range | None


class HabitDocument(Struct, frozen=True):
    """A cause of a slow step that isn't a sync."""

    id: str
    rule: str
    area: Area
    severity: Severity
    confidence: Confidence
    scope: tuple[str, ...]
    op: str
    per_step: float
    evidence: Annotated[tuple[str, ...], about("numeric evidence")]
    segments: Annotated[tuple[SegmentDocument, ...], about("launches that graphs can contain")]
    splits: Annotated[tuple[Split, ...], about("what separates the graphs")]
    cost_us: Annotated[float | None, about("measured")]
    recoverable_us: float | None
    recoverable_range_us: Range | None
    basis: Annotated[Basis | None, about("basis of the gain")]
    title: str
    why: str
    fix: str
    when_fine: str


def habit_document(h: Habit) -> HabitDocument:
    """Return one habit as its JSON document; all times in µs per step."""
    a, gain = h.advice, h.gain
    return HabitDocument(
        id=h.id,
        rule=a.rule,
        area=a.area,
        severity=h.severity,
        confidence=h.confidence,
        scope=h.scope,
        op=h.op,
        per_step=h.per_step,
        evidence=h.evidence,
        segments=tuple(_segment(segment) for segment in h.segments),
        splits=h.splits,
        cost_us=h.cost_us,
        recoverable_us=gain.recoverable_us if gain else None,
        recoverable_range_us=gain.range_us if gain else None,
        basis=gain.basis if gain else None,
        title=a.title,
        why=a.why,
        fix=a.fix,
        when_fine=a.when_fine,
    )


def _segment(segment: Segment) -> SegmentDocument:
    gain = segment.gain
    return SegmentDocument(
        phase=segment.phase,
        launches=segment.launches,
        host_us=segment.host_us,
        ended_by=segment.ended_by,
        recoverable_us=gain.recoverable_us if gain else None,
        recoverable_range_us=gain.range_us if gain else None,
    )
