"""One trace, one story: every format has the same verdict, the same changes in the same order, the same numbers."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from syncscan.report import evidence, fragment, render, terminal, whatif_report
from syncscan.report.front import Front, front_of
from syncscan.report.story import RANKED, ranked
from tests.each import each
from tests.recordings import FOLDER, analyzed, large, name, rendered
from tests.schemas import wrong

TRACES = sorted([*FOLDER.glob("*.gz"), *FOLDER.glob("whatif/*.gz"), *FOLDER.glob("programs/recorded/*.gz")])


def plain(text: str) -> str:
    """The words in one line, without the marks of Markdown, HTML or GitHub's commands."""
    text = re.sub(r"\\([\W_])", r"\1", html.unescape(re.sub(r"<[^>]+>", "", text))).replace("\u200b", "")
    return " ".join(text.replace("*", "").replace("`", "").replace("%25", "%").split())


def said(front: Front) -> Iterator[str]:
    yield from (front.verdict, front.together)
    for change in front.changes:
        yield from (change.amount, change.place, change.do)
    yield front.then


@pytest.mark.parametrize("form", ["text", "markdown", "html", "fragment", "json", "github", "junit"])
@each("recording", TRACES, name, large)
def test_every_format_has_the_first_screen(recording: Path, form: str) -> None:
    """Verdict, what the changes gain together, each change with its gain, place and advice, and what comes then.

    Where a person reads it, also why the gains are sure or not.
    """
    analysis = analyzed(recording)
    text = render(analysis, form, width=1000) if form == "text" else rendered(recording, form)
    if form == "json":
        step = json.loads(text)["step"]
        text = " ".join((step["verdict"], step["summary"], *step["advice"]))
    shown, front, at = plain(text), front_of(analysis), 0
    doubt = [front.why_sure[1:]] if form in ("text", "markdown", "html", "fragment") else []
    for sentence in (*said(front), *doubt):
        assert plain(sentence) in shown[at:]
        at = shown.index(plain(sentence), at)


@pytest.mark.parametrize("form", ["text", "markdown", "fragment", "html"])
@each("recording", TRACES, name, large)
def test_every_format_lists_each_finding_and_habit_with_what_it_saves(recording: Path, form: str) -> None:
    """In one order, but for a page, which sorts them itself; a notebook has the first of them."""
    analysis = analyzed(recording)
    options = {"text": {"verbose": True, "width": 1000}, "markdown": {"verbose": True}}.get(form)
    shown = plain(render(analysis, form, **options) if options else rendered(recording, form))
    at = shown.index(RANKED) if form != "html" and analysis.shown.ranked else 0
    for entry in ranked(analysis)[: fragment.MAX_ROWS if form == "fragment" else 50]:
        assert plain(entry.saves) in shown[at:]
        title = plain(entry.of.title)
        assert title in shown[at:]
        at = shown.index(title, at) if form != "html" else 0


@each("recording", TRACES, name, large)
def test_a_scanner_gets_the_same_verdict(recording: Path) -> None:
    """As a property of the run."""
    (run,) = json.loads(rendered(recording, "sarif"))["runs"]
    assert run["properties"]["step"]["verdict"] == front_of(analyzed(recording)).verdict


@each("recording", TRACES, name, large)
def test_a_finding_s_evidence_rests_on_the_same_verdict(recording: Path) -> None:
    """The block for a pull request may be all that its reader sees."""
    analysis = analyzed(recording)
    for finding in analysis.findings[:1]:
        assert plain(front_of(analysis).verdict) in plain(evidence.render(analysis, finding))


@each("recording", TRACES, name, large)
def test_json_follows_its_schema(recording: Path) -> None:
    """To the last key; so does what the step would be without its syncs."""
    analysis = analyzed(recording)
    assert wrong("analysis", rendered(recording, "json")) == []
    if analysis.replayable:
        assert wrong("whatif", whatif_report.render(analysis, analysis.whatif("all"))) == []


@pytest.mark.parametrize("program", ["log_item", "pageable", "logged", "clean", "maskedloss.v0"])
def test_what_if_advises_what_the_report_does(program: str) -> None:
    """For programs word for word; in text the same changes in the same order."""
    analysis = analyzed(FOLDER / f"{program}.pt.trace.json.gz")
    front, projection = front_of(analysis), analysis.whatif()
    assert json.loads(whatif_report.render(analysis, projection))["advice"] == list(front.advice)
    text = plain(terminal.drawn(whatif_report.blocks(analysis, projection), 1000))
    assert all(change.do in text for change in front.changes)
    assert front.then in text


def test_the_traces_have_something_to_tell() -> None:
    """Syncs first, habits first, several remedies, none: or the comparison would prove nothing."""
    names = ("log_item.pt.trace", "random_step_1", "maskedloss.v0.pt.trace")
    habit_first, sync_first, nothing = (
        front_of(analyzed(path)).changes for stem in names for path in TRACES if path.name == f"{stem}.json.gz"
    )
    assert len(TRACES) > 40
    assert habit_first[0].habit
    assert sync_first[0].findings
    assert not nothing
