"""Render rows of a table as CSV; an analysis has one row per finding, with the columns of `Analysis.to_frame()`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any

from syncscan.model.analysis import Analysis
from syncscan.report.finding_table import COLUMNS, finding_rows
from syncscan.report.spreadsheet import cell


def render(analysis: Analysis) -> str:
    """Return the findings as CSV with a header; times in µs per step."""
    path, withheld = analysis.trace.info.path, analysis.step.waits_withheld
    return drawn(COLUMNS, finding_rows(analysis.shown.findings, path, withheld))


def drawn(columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as CSV with a header; numbers have three decimals.

    Text that a spreadsheet would run gets an apostrophe in front; line ends and control characters in it are replaced.

    Args:
        columns: their names, in order.
        rows: each with these keys.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: cell(value) for name, value in row.items()} for row in rows)
    return out.getvalue()
