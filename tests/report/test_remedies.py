"""Facts about how the one list of remedies is shown."""

from __future__ import annotations

from dataclasses import replace

from syncscan.model.habit import Basis
from syncscan.report import markdown
from syncscan.report import remedies as report
from tests.whatif.test_remedies import step


def test_each_line_says_what_and_where_how_much_within_which_range_and_what_is_left():
    """Numbered, the largest gain first; what it gains after those above stands behind each but the first."""
    analysis = step()
    head, first, *rest = report.lines(analysis)
    assert head.startswith("What to change, by what it gains")
    assert first.startswith(" 1. ")
    assert " to " in first
    assert all("; then " in line for line in rest)


def test_one_thing_alone_needs_no_list():
    """It stands above already."""
    assert list(report.lines(step(loading=0.0, launches=5))) == []


def test_an_upper_bound_is_called_one_and_what_gains_nothing_any_more_says_so():
    """No promise is made of either."""
    analysis = step()
    first, second = analysis.remedies[:2]
    bound = replace(second, basis=Basis.UPPER_BOUND, after_us=None)
    nothing = replace(second, after_us=0.0)
    lines = list(report.lines(replace(analysis, remedies=(first, nothing, bound))))
    assert "then nothing that can be measured" in lines[2]
    assert ": at most " in lines[3]
    assert lines[3].endswith("not projected")


def test_of_many_the_first_are_named():
    """Five, and how many more there are."""
    analysis = step()
    many = replace(analysis, remedies=analysis.remedies * 4)
    lines = list(report.lines(many))
    assert len(lines) == 7
    assert lines[-1] == f" … and {len(many.remedies) - 5} more."


def test_markdown_shows_the_same_list():
    """Numbered."""
    analysis = step()
    text = markdown.render(analysis)
    assert "\n1. " in text
    assert "; then " in text


def test_the_json_holds_all_of_it():
    """Ids lead to the findings and habits of the same document."""
    analysis = step()
    document = report.document(analysis.remedies)
    ids = {f.id for f in analysis.findings} | {h.id for h in analysis.habits}
    assert {r["habit"] or r["findings"][0] for r in document} <= ids
    assert [r["alone_us"] for r in document] == [r.alone_us for r in analysis.remedies]
