"""The report for programs: the same story in lines, in pages that fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncscan import api
from syncscan.report import brief, remedies, whatif
from syncscan.report.story import story_of

SAMPLES = Path(__file__).parents[2] / "sample_traces"


@pytest.mark.parametrize("name", ["maskedloss.v0", "log_item", "clean"])
def test_it_tells_the_story(name: str) -> None:
    """Verdict, what to change with its numbers, each finding and each habit by its id."""
    analysis = api.analyze(SAMPLES / f"{name}.pt.trace.json.gz")
    story, text = story_of(analysis), brief.render(analysis)
    assert f"verdict: {story.verdict}. " in text
    for entry in (*story.findings, *story.habits):
        assert entry.id in text
    for remedy in story.remedies:
        assert remedy.saves in text


def test_a_projection_is_reported_in_lines() -> None:
    """A finding a line with whether it was removed, as the analysis says it; no table, nothing wrapped."""
    analysis = api.analyze(SAMPLES / "maskedloss.v0.pt.trace.json.gz")
    projection = analysis.whatif("rule:nonzero")
    lines = whatif.render_brief(analysis, projection, [analysis.pipeline("loss")]).splitlines()
    findings = [line for line in brief.render(analysis).splitlines() if line.startswith("- ")]
    assert [line for line in lines if line.startswith("- ")] == [
        line.replace("- ", "- removed " if "nonzero-" in line else "- kept ", 1) for line in findings
    ]
    assert lines[0].endswith("times as fast.")
    assert any(line.startswith("`loss` (") for line in lines)
    assert all(len(line.split("  ")) == 1 for line in lines)


def test_a_page_holds_what_fits_and_no_line_is_lost() -> None:
    """A long name loses its middle; the pages together are the lines."""
    lines = [f"line {number} " + "x" * 80 for number in range(200)] + ["y" * 10_000]
    first = brief.paged(lines)
    count = int(first.splitlines()[-1].split(";")[0].split()[-1])
    pages = [brief.paged(lines, page) for page in range(1, count + 1)]
    shown = [line for page in pages for line in page.splitlines() if not line.startswith("[page ")]
    assert max(map(len, pages)) <= brief.PAGE + 100
    assert shown[:-1] == lines[:-1]
    assert len(shown[-1]) == brief.LINE


@pytest.mark.parametrize("page", [-1, 0, 2])
def test_a_page_that_is_not_there(page: int) -> None:
    """None before the first either."""
    assert brief.paged(["a"], page) == f"There is no page {page}; the last is 1.\n"


def test_control_characters_are_not_passed_on() -> None:
    """A name out of a trace is text, and no order to a terminal."""
    assert "\x1b" not in brief.paged(["\x1b[31mred"])


def test_a_change_of_many_syncs_keeps_its_figures() -> None:
    """Three ids stand for thirty, and where the line is too long its fix is what gets shorter."""
    members = tuple(remedies.RemovedSync(id=f"rule-{n:08x}", number=n, title="t", where="w") for n in range(30))
    report = remedies.RemedyText(
        number=1, what="a copy waits, and 29 more, removed together", where="a.py:1 · aten::to, " * 9, members=members,
        habit="", alone_us=1.0, basis=None, saves="622 µs (10%)", doubt="466 µs to 1.96 ms", left="",
        fix="Do it. " * 99,
    )  # fmt: skip
    line = brief.remedy(report)
    assert "[rule-00000000, rule-00000001, rule-00000002 and 27 more]: 622 µs (10%), 466 µs to 1.96 ms. Do it." in line
    assert len(line) <= brief.LINE
