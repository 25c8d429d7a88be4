"""CSV: the frame's columns, safe to open in a spreadsheet, read back by any reader."""

from __future__ import annotations

import csv as stdlib
import io
from collections.abc import Callable

import pandas as pd

from syncscan.report.frames import FINDING_COLUMNS, finding_frame
from tests.each import each
from tests.report.example import HOSTILE, analysis, hostile, rendered, typical


def rows(text: str) -> list[dict[str, str]]:
    return list(stdlib.DictReader(io.StringIO(text), strict=True))


def test_golden(golden: Callable[[str, str], None]):
    """The typical analysis looks as kept."""
    golden("report.csv", rendered("csv", typical()))


def test_columns_are_those_of_the_frame():
    """The header is `FINDING_COLUMNS`, and pandas reads the numbers that `to_frame` has."""
    read = pd.read_csv(io.StringIO(rendered("csv", typical())))
    frame = finding_frame(typical())
    assert list(read.columns) == list(FINDING_COLUMNS) == list(frame.columns)
    assert read["wait_us"].tolist() == frame["wait_us"].tolist()
    assert read["line"].isna().tolist() == [False, False, False, True]


def test_no_findings_is_a_header():
    """Nothing found gives a table without rows."""
    assert rendered("csv", analysis()).strip() == ",".join(FINDING_COLUMNS)


@each("text", HOSTILE)
def test_hostile_text_stays_in_its_cell(text: str):
    """One finding is one row of as many cells as there are columns, and none begins like a formula."""
    (row,) = rows(rendered("csv", hostile(text)))
    assert set(row) == set(FINDING_COLUMNS)
    assert not [v for v in row.values() if v.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert len(rendered("csv", hostile(text)).splitlines()) == 2
