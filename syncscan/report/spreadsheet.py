"""Make a value safe for a cell of a CSV file: no spreadsheet runs it."""

from __future__ import annotations

from typing import Any

from syncscan.report.shown_names import shown

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
