"""Render verdicts as the JSON that other programs rely on (schema `syncscan.check/1`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Struct
from msgspec.structs import asdict

from syncscan.gate.verdict import By, CheckVerdict, Limit, Violation
from syncscan.model.finding import Finding
from syncscan.model.json_text import Document, about, indented, written
from syncscan.model.race import Race
from syncscan.version import __version__

SCHEMA = "syncscan.check/1"


class CheckedFinding(Struct, frozen=True):
    """A finding that a limit counts."""

    id: str
    rule: str
    op: str
    scope: tuple[str, ...]
    file: str | None
    line: int | None
    exact: bool | None
    per_step: float
    wait_us: float
    recoverable_us: float | None
    once_compiled_us: Annotated[
        float | None, about("projected: saving if the network is compiled and other syncs are removed")
    ]


class ExemptFinding(CheckedFinding, frozen=True):
    """A finding that no limit counts, and why."""

    by: By
    reason: str


class ExemptRaceDocument(Struct, frozen=True):
    """A race that no limit counts, and why."""

    id: str
    by: By
    reason: str


class LimitDocument(Struct, frozen=True):
    """The most that a project allows."""

    by: str | None
    glob: str | None
    syncs: float | None
    wait_ms: float | None
    recoverable: float | None
    held_up: Annotated[float | None, about("for jobs only")]


class ViolationDocument(Struct, frozen=True):
    """A limit that was exceeded."""

    limit: LimitDocument
    sentence: str
    findings: tuple[str, ...]
    races: tuple[str, ...]


class VerdictDocument(Struct, frozen=True):
    """Whether one recording is within the limits."""

    path: str
    passed: bool
    violations: tuple[ViolationDocument, ...]
    counted: tuple[CheckedFinding, ...]
    exempt: tuple[ExemptFinding, ...]
    notes: tuple[str, ...]
    races: Annotated[tuple[Race, ...], about("races that count toward the limit, for a dry run")]
    exempt_races: tuple[ExemptRaceDocument, ...]


class CheckDocument(Document, frozen=True):
    """Whether recordings are within a project's limits."""

    passed: bool
    rules_from: str
    traces: tuple[VerdictDocument, ...]


def render(verdicts: Sequence[CheckVerdict], rules_from: str) -> str:
    """Return the verdicts as indented JSON; times in µs per step."""
    document = CheckDocument(
        schema=SCHEMA,
        syncscan=__version__,
        passed=all(v.passed for v in verdicts),
        rules_from=rules_from,
        traces=tuple(_verdict(v) for v in verdicts),
    )
    return indented(document) + "\n"


def _verdict(verdict: CheckVerdict) -> VerdictDocument:
    exempt = (ExemptFinding(**asdict(_finding(e.of)), by=e.by, reason=e.reason) for e in verdict.exempt)
    return written(
        VerdictDocument,
        verdict,
        violations=tuple(_violation(v) for v in verdict.violations),
        counted=tuple(_finding(f) for f in verdict.counted),
        exempt=tuple(exempt),
        notes=verdict.all_notes,
        exempt_races=tuple(ExemptRaceDocument(e.of.id, e.by, e.reason) for e in verdict.exempt_races),
    )


def _violation(violation: Violation) -> ViolationDocument:
    findings = tuple(f.id for f in violation.findings)
    return ViolationDocument(
        _limit(violation.limit), violation.sentence, findings, tuple(r.id for r in violation.races)
    )


def _limit(limit: Limit) -> LimitDocument:
    return written(LimitDocument, limit, by=limit.by or None, glob=limit.glob or None)


def _finding(finding: Finding) -> CheckedFinding:
    source = finding.source
    line = {name: getattr(source, name) if source else None for name in ("file", "line", "exact")}
    return written(CheckedFinding, finding, **line)
