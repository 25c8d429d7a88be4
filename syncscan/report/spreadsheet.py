"""From a value to a cell of a CSV file that no spreadsheet runs."""

from __future__ import annotations

from typing import Any

from syncscan.report.names import shown

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A cell that begins so is run as a formula by spreadsheets (OWASP, CSV injection)."""
_CELL = 2000


def cell(value: Any) -> Any:
    """A number with three decimals; text on one line, with an apostrophe in front where a spreadsheet would run it."""
    if isinstance(value, float):
        return round(value, 3)
    if not isinstance(value, str):
        return value
    text = shown(value, _CELL)
    return f"'{text}" if value.startswith(_FORMULA) else text
