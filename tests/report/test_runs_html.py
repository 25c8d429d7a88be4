"""A folder's recordings on one page: oldest first in the trend, newest first in the table, each with a link."""

from __future__ import annotations

import re
from datetime import datetime, timezone

import pytest

from syncscan.report.runs_html import RunRow, render, run_line
from tests.report.example import typical

MONDAY = datetime(2026, 3, 2, 9, 30, tzinfo=timezone.utc)


def line(name: str, step_us: float | None, wait_us: float | None = 0.0) -> RunRow:
    return RunRow(
        name=name, written=MONDAY, link=name, device="H200", verdict="Syncs are the limit",
        step_us=step_us, wait_us=wait_us, gain_us=0.0, findings=2,
    )  # fmt: skip


def test_a_line_has_the_numbers_of_the_analysis() -> None:
    step, of_run = typical().step, run_line(typical(), "a.json", MONDAY, "0")
    assert (of_run.step_us, of_run.wait_us, of_run.gain_us) == (step.observed_us, step.wait_us, step.recoverable_us)
    assert of_run.findings == len(typical().findings)


@pytest.mark.parametrize(
    ("steps", "heading"),
    [
        ([2000.0, 1000.0], "2 recordings: the newest step, 1.00 ms, is 50% shorter than the oldest, 2.00 ms"),
        ([1000.0, 3000.0], "2 recordings: the newest step, 3.00 ms, is 200% longer than the oldest, 1.00 ms"),
        ([1000.0, 1001.0], "2 recordings: the newest step, 1.00 ms, is like the oldest, 1.00 ms"),
        ([1000.0, None], "2 recordings"),
        ([1000.0], "1 recording"),
    ],
)
def test_the_heading_compares_the_newest_step_with_the_oldest(steps: list[float | None], heading: str) -> None:
    page = render("runs", [line(str(n), us) for n, us in enumerate(steps)])
    assert f"<h1>{heading}</h1>" in page


def test_the_trend_is_drawn_to_one_scale() -> None:
    """The longest step is as high as the drawing, a step half as long half as high, its waits a quarter."""
    page = render("runs", [line("a", 2000.0, 500.0), line("b", 1000.0, 500.0)])
    heights = [float(h) for h in re.findall(r'class="(?:step|wait)" .*? height="([\d.]+)"', page)]
    assert heights == [180, 45, 90, 45]


def test_the_table_begins_with_the_newest() -> None:
    page = render("runs", [line("old", 1.0), line("new", 1.0)])
    table = page[page.index("<tbody>") :]
    assert table.index('href="new"') < table.index('href="old"')


def test_names_are_text_and_files_that_failed_are_named() -> None:
    page = render("<b>", [line("<script>", 1.0)], [("bad.json", "it ends early")], left_out=3)
    assert "<script" not in page
    assert "bad.json" in page
    assert "it ends early" in page
    assert "3 older recordings aren't listed." in page
