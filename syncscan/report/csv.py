"""From an Analysis to CSV, one row a finding, with the columns of `Analysis.to_frame()`."""

from __future__ import annotations

import csv
import io

from syncscan.model.analysis import Analysis
from syncscan.report.finding_table import COLUMNS, finding_rows
from syncscan.report.spreadsheet import cell


def render(analysis: Analysis) -> str:
    """The findings as CSV with a header; times in µs a step, with three decimals.

    Text that a spreadsheet would run gets an apostrophe in front; line ends and control characters in it are replaced.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {k: cell(v) for k, v in row.items()}
        for row in finding_rows(analysis.shown.findings, analysis.trace.info.path, analysis.step.waits_withheld)
    )
    return out.getvalue()
