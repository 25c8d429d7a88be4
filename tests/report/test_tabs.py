"""Flagged source files have the costs of each line: sums of waits, and the largest saving."""

from __future__ import annotations

from msgspec.structs import replace

from syncscan.model.finding import Excerpt, Finding, Severity, Source
from syncscan.report import html, tabs
from syncscan.report.blocks import Block, Grid, Heading, Sentence, Stacked, plain
from syncscan.report.story import finding_texts
from tests.report.example import HOSTILE, analysis, finding

TRAIN = "/home/me/train.py"


def at(number: int, id: str, wait_us: float = 100.0, text: str = "loss.item()", gain_us: float = 0.0) -> Finding:
    """A finding at a line of a file, with the lines around it."""
    source = Source(TRAIN, number, "step", True)
    lines = (f"before {number}", text, f"after {number}")
    excerpt = Excerpt(path=TRAIN, first=number - 1, lines=lines, marked=(number,), newer=False)
    return finding(
        id, source=source, wait_us=wait_us, recoverable_us=gain_us, recoverable_range_us=(0.0, gain_us), excerpt=excerpt
    )


def blocks(*findings: Finding) -> list[Block]:
    return list(tabs.annotated(finding_texts(analysis(*findings))))


def rows(*findings: Finding) -> list[list[str]]:
    """Return the lines of the only file: wait, idle time, saving, number and text."""
    (grid,) = [block for block in blocks(*findings) if isinstance(block, Grid)]
    return [[plain(cell) for cell in row if not isinstance(cell, Stacked)] for row in grid.rows]


def test_a_line_has_the_costs_of_all_its_findings() -> None:
    """Waits add up; savings alone don't, so that the largest stands there."""
    lines = rows(at(10, "a-1", gain_us=900.0), at(10, "a-2", gain_us=2_000.0), at(20, "a-3"))
    assert [line[3] for line in lines] == ["9", "10", "11", "19", "20", "21"]
    wait, _, saves, _, text = lines[1]
    assert (wait, saves, text) == ("200 µs", "2.0 ms, the largest of 2", "loss.item()")
    assert lines[0][:3] == ["", "", ""]
    assert lines[4][2] == "less than 1%"


def test_the_file_that_waits_longest_comes_first() -> None:
    """A finding that is intended doesn't count, and one without a line has no file."""
    other = replace(at(5, "b-1", wait_us=5_000.0), source=Source("b.py", 5, "f", True))
    nowhere = finding("c-1", source=None)
    intended = replace(at(30, "d-1"), severity=Severity.INFO)
    titles = [plain(b.words) for b in blocks(at(10, "a-1"), other, nowhere, intended) if isinstance(b, Heading)]
    assert titles == ["b.py waits 5.00 ms", f"{TRAIN} waits 100 µs"]


def test_a_file_that_is_not_at_hand_has_its_lines_without_their_text() -> None:
    """Nothing is read for it."""
    away = replace(at(10, "a-1"), excerpt=None)
    assert Sentence(tabs.AWAY, "dim") in blocks(away)
    assert [(wait, number, text) for wait, _, _, number, text in rows(away)] == [("100 µs", "10", "")]


def test_hostile_source_is_text_in_the_page() -> None:
    """Markup of any kind, in the line and in the file's name."""
    evil = '<script>alert(1)</script>"'
    page = html.render(analysis(at(10, "a-1", text=evil), at(20, "a-2", text=HOSTILE[0])))
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert 'id="panel-source"' in page
