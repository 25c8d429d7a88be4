"""Render flagged lines as CSV, a row each; those of an analysis have the columns of `Analysis.to_frame()`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any

from syncscan.model.analysis import Analysis
from syncscan.report.flagged import Flagged
from syncscan.report.flagged_findings import flagged_findings
from syncscan.report.spreadsheet import cell


def render(analysis: Analysis) -> str:
    """Return races and findings as CSV with a header; times in µs per step."""
    return drawn(flagged_findings(analysis))


def drawn(flagged: Flagged) -> str:
    """Return flagged lines as CSV with a header, in order."""
    return table(flagged.columns, (line.row for line in flagged.lines))


def table(columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as CSV with a header; numbers have three decimals.

    Text that a spreadsheet would run gets an apostrophe in front; line ends and control characters in it are replaced.

    Args:
        columns: their names, in order.
        rows: their cells by column.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: cell(value) for name, value in row.items()} for row in rows)
    return out.getvalue()
