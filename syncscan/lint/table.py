"""Build flat rows of lint warnings for a CSV file."""

from __future__ import annotations

from typing import Any

from syncscan.lint.warning import LintWarning

COLUMNS = (
    "rule", "cause", "severity", "confidence", "file", "cell", "line", "column", "function", "scope", "code", "place",
    "because", "title", "fix",
)  # fmt: skip


def warning_row(g: LintWarning) -> dict[str, Any]:
    at, judged = g.source, (g.rule, g.cause.value, g.severity.value, g.confidence.value)
    stands = (at.file, at.cell, at.line, at.column, at.function, " > ".join(g.scope), at.code, g.place)
    return dict(zip(COLUMNS, (*judged, *stands, g.because, g.title, g.fix), strict=True))
