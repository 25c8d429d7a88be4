"""Flagged source files have the costs of each line: sums of waits, and the largest saving."""

from __future__ import annotations

from msgspec.structs import replace

from syncscan.model.finding import Excerpt, Finding, Severity, Source
from syncscan.report import annotated, html
from syncscan.report.annotated import AnnotatedFile
from syncscan.report.story import story_of
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


def files(*findings: Finding) -> list[AnnotatedFile]:
    return annotated.files(story_of(analysis(*findings)).findings)


def test_a_line_has_the_costs_of_all_its_findings() -> None:
    """Waits add up; savings alone don't, so that the largest stands there."""
    (file,) = files(at(10, "a-1", gain_us=900.0), at(10, "a-2", gain_us=2_000.0), at(20, "a-3"))
    assert [x.number for x in file.lines] == [9, 10, 11, 19, 20, 21]
    ten = file.lines[1]
    assert (ten.wait, ten.saves, ten.text) == ("200 µs", "2.0 ms, the largest of 2", "loss.item()")
    assert [x.number for x in file.lines if x.after_gap] == [9, 19]
    assert (file.lines[4].saves, file.wait, file.note) == ("less than 1%", "300 µs", "")


def test_the_file_that_waits_longest_comes_first() -> None:
    """A finding that is intended doesn't count, and one without a line has no file."""
    other = replace(at(5, "b-1", wait_us=5_000.0), source=Source("b.py", 5, "f", True))
    nowhere = finding("c-1", source=None)
    intended = replace(at(30, "d-1"), severity=Severity.INFO)
    assert [file.place for file in files(at(10, "a-1"), other, nowhere, intended)] == ["b.py", TRAIN]


def test_a_file_that_is_not_at_hand_has_its_lines_without_their_text() -> None:
    """Nothing is read for it."""
    (file,) = files(replace(at(10, "a-1"), excerpt=None))
    assert (file.note, [(x.number, x.text, x.wait) for x in file.lines]) == (annotated.AWAY, [(10, "", "100 µs")])


def test_hostile_source_is_text_in_the_page() -> None:
    """Markup of any kind, in the line and in the file's name."""
    evil = '<script>alert(1)</script>"'
    page = html.render(analysis(at(10, "a-1", text=evil), at(20, "a-2", text=HOSTILE[0])))
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert 'class="annotated"' in page
