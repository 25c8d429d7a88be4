"""Flag lint warnings for CI servers, one line each."""

from __future__ import annotations

import hashlib

from syncscan.lint.report import beside, doubt, verdict
from syncscan.lint.table import COLUMNS, warning_row
from syncscan.lint.warning import LIMITS, LintResult, LintWarning
from syncscan.report.flagged import FilePosition, Flagged, FlaggedLine
from syncscan.report.phrases import sentences


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
    d = g.diagnosis
    known_by = "\0".join((g.rule, g.function, g.code)).encode("utf-8", "replace")
    return FlaggedLine(
        rule=g.rule,
        severity=g.severity,
        title=f"possible sync: {d.title}",
        message=sentences(g.code, g.because, doubt(g), d.fix, f"Rule {g.rule}"),
        place=FilePosition(g.file, g.line, g.column, g.end_line),
        rule_name=d.name,
        rule_help=f"{d.fix} Fine: {d.when_fine}",
        tags=("performance", d.cause.value.lower()),
        summary=sentences(f"Possible sync: {d.title}", g.because, doubt(g), d.fix),
        inside=(g.function, "function") if g.function else None,
        fingerprints={"syncscanGuess/v1": hashlib.sha256(known_by).hexdigest()[:16]},
        figures={"guess": True, "cause": d.cause.value, "confidence": d.confidence.value},
        rows=(warning_row(g),),
    )
