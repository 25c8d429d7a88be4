"""From guesses to CSV, one row each."""

from __future__ import annotations

import csv
import io

from syncscan.model.guess import Guess, Linted
from syncscan.report.names import shown

COLUMNS = (
    "rule", "cause", "severity", "confidence", "file", "cell", "line", "column", "function", "scope", "code", "place",
    "because", "title", "fix",
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A cell that begins so is run as a formula by spreadsheets (OWASP, CSV injection)."""


def render(linted: Linted) -> str:
    """The guesses as CSV with a header; text that a spreadsheet would run gets an apostrophe in front."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(_row(guess) for guess in linted.guesses)
    return out.getvalue()


def _row(g: Guess) -> list[object]:
    d = g.diagnosis
    texts = (d.rule, d.cause.value, g.severity.value, d.confidence.value, g.file)
    more = (g.function, " > ".join(g.scope), g.code, g.place, g.because, d.title, d.fix)
    return [*map(_cell, texts), g.cell, g.line, g.column, *map(_cell, more)]


def _cell(value: str) -> str:
    text = shown(value, 2000)
    return f"'{text}" if value.startswith(_FORMULA) else text
