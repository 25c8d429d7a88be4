"""Build the parts of JSON on findings, races and habits; times are µs per step."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Confidence, Finding, FindingFacts, Severity
from syncscan.model.habit import Area, Basis, Habit, Split
from syncscan.model.json_text import Range, about, written


def finding_document(f: Finding, analysis: Analysis) -> FindingFacts:
    """Return what JSON writes of a finding: without its evidence, and without times that the trace can't tell."""
    withheld = {"wait_us": None, "bubble_us": None} if analysis.step.waits_withheld else {}
    return written(FindingFacts, f, **withheld)


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
    texts = {name: getattr(h.advice, name) for name in ("area", "title", "why", "fix", "when_fine")}
    return written(HabitDocument, h, **texts)
