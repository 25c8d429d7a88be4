"""From a Fleet to CSV, one row a rank, step and finding, with the columns of `Fleet.to_frame()`."""

from __future__ import annotations

import csv
import io

from syncscan.model.fleet import Fleet
from syncscan.report.fleet_table import COLUMNS, fleet_rows
from syncscan.report.spreadsheet import cell


def render(fleet: Fleet) -> str:
    """The rows as CSV with a header; times in µs, with three decimals, and text as in `report.csv`."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: cell(value) for name, value in row.items()} for row in fleet_rows(fleet))
    return out.getvalue()
