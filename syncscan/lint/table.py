"""Build flat rows of lint warnings for a CSV file."""

from __future__ import annotations

from typing import Any

from syncscan.lint.warning import LintWarning

COLUMNS = (
    "rule", "cause", "severity", "confidence", "file", "cell", "line", "column", "function", "scope", "code", "place",
    "because", "title", "fix",
)  # fmt: skip


def warning_row(g: LintWarning) -> dict[str, Any]:
    d = g.diagnosis
    judged = (d.rule, d.cause.value, g.severity.value, d.confidence.value)
    stands = (g.file, g.cell, g.line, g.column, g.function, " > ".join(g.scope), g.code, g.place)
    return dict(zip(COLUMNS, (*judged, *stands, g.because, d.title, d.fix), strict=True))
