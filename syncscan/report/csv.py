"""Render flagged lines as CSV; those of an analysis have the columns of `Analysis.to_frame()`, a row each."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from itertools import chain
from typing import Any

from syncscan.report.flagged import Flagged
from syncscan.report.printable import shown


def drawn(flagged: Sequence[Flagged]) -> str:
    """Return flagged lines as CSV with a header, in order; numbers have three decimals.

    Text that a spreadsheet would run gets an apostrophe in front; line ends and control characters in it are replaced.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, list(flagged[0].columns), lineterminator="\n")
    writer.writeheader()
    for one in flagged:
        for row in chain(*(line.rows for line in one.lines), one.rows):
            writer.writerow({name: cell(value) for name, value in row.items()})
    return out.getvalue()


_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters of cells that spreadsheets run as formulas (OWASP, CSV injection)."""
_CELL = 2000


def cell(value: Any) -> Any:
    """Return a number with three decimals, or text on one line, with an apostrophe before a formula."""
    if isinstance(value, float):
        return round(value, 3)
    if not isinstance(value, str):
        return value
    text = shown(value, _CELL)
    return f"'{text}" if value.startswith(_FORMULA) else text
