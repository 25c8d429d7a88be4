"""Flag lint warnings for CI servers, one line each, with their rows of a CSV file."""

from __future__ import annotations

import hashlib
from typing import Any

from syncscan.lint.report import beside, doubt, verdict
from syncscan.lint.warning import LIMITS, LintResult, LintWarning
from syncscan.report.flagged import FilePosition, Flagged, FlaggedLine
from syncscan.report.phrases import sentences

COLUMNS = (
    "rule", "cause", "severity", "confidence", "file", "cell", "line", "column", "function", "scope", "code", "place",
    "because", "title", "fix",
)  # fmt: skip


def flagged_warnings(linted: LintResult) -> Flagged:
    met = (("note", LIMITS), *(("warning", text) for text in (*linted.unread, *linted.notes)))
    return Flagged(
        tool="syncscan lint",
        lines=tuple(_line(warning) for warning in linted.warnings),
        columns=COLUMNS,
        closing=(verdict(linted), *beside(linted), LIMITS),
        notifications=met,
        failed=linted.unread_named,
    )


def _line(g: LintWarning) -> FlaggedLine:
    at = g.source
    known_by = "\0".join((g.rule, at.function, at.code)).encode("utf-8", "replace")
    return FlaggedLine(
        rule=g.rule,
        severity=g.severity,
        title=f"possible sync: {g.title}",
        message=sentences(at.code, g.because, doubt(g), g.fix, f"Rule {g.rule}"),
        place=FilePosition(at.file, at.line, at.column, at.end_line),
        rule_name=g.name,
        rule_help=f"{g.fix} Fine: {g.when_fine}",
        tags=("performance", g.cause.value.lower()),
        summary=sentences(f"Possible sync: {g.title}", g.because, doubt(g), g.fix),
        inside=(at.function, "function") if at.function else None,
        fingerprints={"syncscanGuess/v1": hashlib.sha256(known_by).hexdigest()[:16]},
        figures={"guess": True, "cause": g.cause.value, "confidence": g.confidence.value},
        rows=(_row(g),),
    )


def _row(g: LintWarning) -> dict[str, Any]:
    at, judged = g.source, (g.rule, g.cause.value, g.severity.value, g.confidence.value)
    stands = (at.file, at.cell, at.line, at.column, at.function, " > ".join(g.scope), at.code, g.place)
    return dict(zip(COLUMNS, (*judged, *stands, g.because, g.title, g.fix), strict=True))
