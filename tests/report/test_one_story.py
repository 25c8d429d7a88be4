"""One trace, one story: every format names the same verdict, the same changes in the same order, the same numbers."""

from __future__ import annotations

import functools
import html
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import pytest

from syncscan import api, gate
from syncscan.gate import check_document
from syncscan.gate.verdict import Limit, Rules
from syncscan.report import render, terminal, whatif_json, whatif_report
from syncscan.report.units import duration, within
from tests.each import each
from tests.recordings import FOLDER, analyzed, name, rendered
from tests.report.test_schemas import wrong

TRACES = sorted([*FOLDER.glob("*.gz"), *FOLDER.glob("whatif/*.gz"), *FOLDER.glob("programs/recorded/*.gz")])
LISTED = 5
"""Remedies that the shorter formats list; the others count the rest."""
ROWS = 20
"""Findings that the shortest format shows."""


@dataclass(frozen=True)
class Facts:
    """Facts that a reader of one format learns; None where that format leaves one out."""

    verdict: str
    remedies: list[str] | None = None
    """The saving of each remedy alone, in their order."""
    changes: list[str] | None = None
    """The description of each change."""
    findings: list[tuple[str, str]] | None = None
    """Title and what it saves."""
    habits: list[tuple[str, str]] | None = None
    """Title and what it saves."""


@functools.cache
def expected(recording: Path) -> Facts:
    """Return what the report's JSON says."""
    return of_json(rendered(recording, "json"))


def of_json(text: str) -> Facts:
    """Read the facts from JSON's numbers, as a program would."""
    document = json.loads(text)

    step = document["step"]["unprofiled_us"] or document["step"]["observed_us"]

    def saves(us: float | None, limits: list[float] | None, basis: str = "") -> str:
        if us is None:
            return "–"
        if us < 0.01 * step or not us:
            return "less than 1%"
        if basis == "upper bound":
            return f"at most {duration(us)}"
        return within(us, (limits[0], limits[1]) if limits else None)

    return Facts(
        verdict=document["step"]["verdict"],
        remedies=[saves(r["alone_us"], r["range_us"], r["basis"]) for r in document["remedies"]],
        changes=[r["what"] for r in document["remedies"]],
        findings=[(f["title"], saves(f["recoverable_us"], f["recoverable_range_us"])) for f in document["findings"]],
        habits=[
            (h["title"], saves(h["recoverable_us"], h["recoverable_range_us"], h["basis"])) for h in document["habits"]
        ],
    )


def figure(text: str) -> str:
    """A saving without its share; a dash where there is none."""
    return text.partition(" (")[0] if "(" in text or text.startswith("less") else "–"


SAVES = r"(?:at most )?[\d.]+ [µm]?s \([\d.]+%\)|less than 1%"
TEXT_REMEDY = re.compile(rf"^ \d+\. ({SAVES}), .*?: (.*)$", re.M)
HABITS = frozenset(rule.id for rule in api.habit_rules())


def of_text(text: str) -> Facts:
    """Read the facts from a terminal so wide that no line wraps."""
    verdict = text.splitlines()[1].partition(". ")[0]
    _, *table = re.split(r"^ *saves alone  +waits.*$", text, maxsplit=1, flags=re.M)
    lines = "".join(table).partition("\n\n")[0].splitlines()[2:]
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines]
    return Facts(
        verdict=verdict,
        remedies=[figure(saves) for saves, _ in TEXT_REMEDY.findall(text)],
        changes=[without_place(what) for _, what in TEXT_REMEDY.findall(text)],
        findings=[(row[2], figure(row[0])) for row in rows if row[3] not in HABITS],
        habits=[(row[2], figure(row[0])) for row in rows if row[3] in HABITS],
    )


def without_place(text: str) -> str:
    """What, without where."""
    return re.sub(r" \((?:[^()]|\([^()]*\))*\)$", "", text.rstrip())


def plain(markdown: str) -> str:
    """Markdown without its marks."""
    return html.unescape(re.sub(r"\\(.)", r"\1", markdown).replace("\u200b", ""))


def of_markdown(text: str) -> Facts:
    """Read the facts from a comment's source."""
    remedies = re.findall(r"^\d+\. \*\*(.*?)\*\*, .*?: (.*?)(?: \(`|\. )", text, re.M)
    rows = [line.split(" | ") for line in text.splitlines() if re.match(r"\| (high|medium|low|info) \|", line)]
    habits = re.findall(r"^\*\*(.*?)\*\*(?: \(`.*?`\))?: (.* \(`.*?`, \w+\))$", text, re.M)[:LISTED]
    return Facts(
        verdict=text.splitlines()[0].removeprefix("### "),
        remedies=[figure(saves) for saves, _ in remedies],
        changes=[plain(what) for _, what in remedies],
        findings=[(plain(row[4]), row[1]) for row in rows],
        habits=[(plain(title), figure(saves.partition(" (`")[0])) for title, saves in habits],
    )


class Elements(HTMLParser):
    """The text of chosen elements, in their order: those whose tag and class are asked for."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self._open: list[tuple[str, str]] = []
        self.feed(markup)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        name = known.get("id") or known.get("class") or ""
        if tag not in ("meta", "input"):
            self._open.append((tag, f"{tag}.{name}".strip(".")))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.found.append(("\n".join(name for _, name in self._open), data.strip()))

    def inside(self, *names: str) -> list[str]:
        """The texts below elements of these names, outermost first."""
        return [text for path, text in self.found if in_order(names, path)]


def in_order(names: tuple[str, ...], path: str) -> bool:
    """Whether the names stand in the path one behind the other."""
    parts: Iterator[str] = iter(path.split("\n"))
    return all(any(part.startswith(name) for part in parts) for name in names)


def of_html(text: str) -> Facts:
    """Read the facts from a page as a browser shows it."""
    page = Elements(text)
    kinds = {
        kind: [page.inside("ol.findings", f"li.{kind}", name) for name in ("button.pick", "strong")] for kind in "fh"
    }
    findings, habits = ([(t, figure(saves)) for t, saves in zip(*each, strict=True)] for each in kinds.values())
    return Facts(
        verdict=page.inside("h1.verdict")[0].removesuffix(".").replace(" may be ", " are "),
        findings=findings,
        habits=habits,
    )


def of_fragment(text: str) -> Facts:
    """Read the facts from a notebook's cell."""
    items = re.findall(r"<li><strong>(.*?)</strong>, .*?: (.*?)(?: <code>.*)?$", text, re.M)
    rows = re.findall(r"<tr style.*?</td>\n<td[^>]*>(.*?)</td>.*?<td style=\"text-align: left\">(.*?)<br>", text, re.S)
    habits = re.findall(r"</span> \w+: (.*?)(?: <code>.*?</code>)?: ((?:at most )?[\d.]+ .*|distorts .*)$", text, re.M)
    return Facts(
        verdict=re.findall(r"<strong>(.*?)\.</strong>", text)[0],
        remedies=[figure(saves) for saves, _ in items],
        changes=[html.unescape(what) for _, what in items],
        findings=[(html.unescape(title), saves) for saves, title in rows],
        habits=[(html.unescape(title), figure(saves)) for title, saves in habits],
    )


SENTENCE = re.compile(rf"(?:^|\. |… )\d+\. .*?: ({SAVES}), ")


def of_github(text: str) -> Facts:
    """Read the facts from the closing notice."""
    message = text.splitlines()[-1].removeprefix("::notice title=syncscan::").replace("%25", "%")
    return Facts(message.partition(". ")[0], [figure(saves) for saves in SENTENCE.findall(message)])


def of_junit(text: str) -> Facts:
    """Read the facts from a property and the suite's texts."""
    suite = ET.fromstring(text).find("testsuite")
    assert suite is not None
    message = suite.findtext("system-out", "")
    verdict = message.partition(". ")[0]
    assert [p.get("value") for p in suite.iter("property") if p.get("name") == "verdict"] == [verdict]
    return Facts(verdict, [figure(saves) for saves in SENTENCE.findall(message)])


def of_sarif(text: str) -> Facts:
    """Read the facts from the run's properties."""
    (run,) = json.loads(text)["runs"]
    return Facts(run["properties"]["step"]["verdict"])


READ = {
    "text": of_text,
    "markdown": of_markdown,
    "html": of_html,
    "fragment": of_fragment,
    "github": of_github,
    "junit": of_junit,
    "sarif": of_sarif,
}
TOGETHER = re.compile(r", and \d+ more, removed together$")
SHORT = ("markdown", "fragment", "github", "junit")
"""Formats that list the first remedies."""


@pytest.mark.parametrize("form", READ)
@each("recording", TRACES, name)
def test_every_format_tells_the_same(recording: Path, form: str) -> None:
    """Verdict; what to change, in its order, with what each saves; findings and habits with theirs."""
    json = expected(recording)
    wide = {"verbose": 1, "width": 1000}
    text = READ[form](render(analyzed(recording), form, **wide) if form == "text" else rendered(recording, form))
    listed = LISTED if form in SHORT else None
    rows = {"markdown": 50, "fragment": ROWS}.get(form)
    assert text.verdict == json.verdict
    assert text.remedies in (None, json.remedies[:listed])
    assert text.changes is None or [TOGETHER.sub("", what) for what in text.changes] == json.changes[:listed]
    assert text.findings in (None, json.findings[:rows])
    assert text.habits in (None, json.habits[:listed])


@each("recording", TRACES, name)
def test_a_finding_s_evidence_rests_on_the_same_verdict(recording: Path) -> None:
    """The block for a pull request may be all that its reader sees."""
    from syncscan.report import evidence

    analysis = analyzed(recording)
    for finding in analysis.findings[:1]:
        assert f". {plain(expected(recording).verdict)}: " in evidence.render(analysis, finding)


@each("recording", TRACES, name)
def test_json_follows_its_schema(recording: Path) -> None:
    """To the last key; so does what the step would be without its syncs, and whether it keeps a limit."""
    analysis = analyzed(recording)
    assert wrong("analysis", rendered(recording, "json")) == []
    if analysis.replayable:
        assert wrong("whatif", whatif_json.render(analysis, analysis.whatif("all"))) == []
    assert wrong("check", check_document.render([gate.check(analysis, Rules(limits=(Limit(syncs=0),)))], "")) == []


@pytest.mark.parametrize("program", ["log_item", "pageable", "logged", "clean", "maskedloss.v0"])
def test_what_if_advises_what_the_report_does(program: str) -> None:
    """For programs word for word; in text the same changes in the same order, and what limits the step without them."""
    analysis = analyzed(FOLDER / f"{program}.pt.trace.json.gz")
    document, projection = json.loads(render(analysis, "json")), analysis.whatif()
    advice = document["step"]["advice"]
    assert json.loads(whatif_json.render(analysis, projection))["advice"] == advice
    text = terminal.drawn(whatif_report.blocks(analysis, projection), 1000)
    listed = of_json(json.dumps(document))
    assert [figure(saves) for saves, _ in TEXT_REMEDY.findall(text)] == (listed.remedies or [])[:LISTED]
    assert all(f"→ {sentence}" in text for sentence in advice if not re.match(r"\d+\. ", sentence))


LEFT_OUT = re.compile(r"\n +\d+ (?:places:|more: -v)")
"""Where the table says which rows it leaves out: with `-v` it leaves out none."""


def words(text: str) -> set[str]:
    """Without the marks around them."""
    return {stripped for word in text.split() if (stripped := word.strip("();:,.·"))}


@each("recording", TRACES, name)
def test_the_first_screen_is_one_screen(recording: Path) -> None:
    """Ten lines at 120 columns, more below, ten rows behind it; no line too long, no word cut in two."""
    analysis = analyzed(recording)
    full_words = words(render(analysis, "text", verbose=1, width=1000))
    for width, most in ((80, 16), (100, 12), (120, 10)):
        screen, *rest = render(analysis, "text", width=width).split("\n\n")
        assert screen.count("\n") < most
        assert max(map(len, "\n".join([screen, *rest]).splitlines()[:-1])) <= width
        ranked = [LEFT_OUT.split(part.split("\n", 3)[3])[0] for part in rest if part.startswith("Sorted by")]
        assert words("".join(ranked)) - full_words == set()


def test_the_traces_have_something_to_tell() -> None:
    """Syncs first, habits first, several remedies, upper bounds, none: or the comparison would prove nothing."""
    names = ("log_item.pt.trace", "random_step_1", "maskedloss.v0.pt.trace")
    habit_first, sync_first, nothing = (
        analyzed(path).remedies for stem in names for path in TRACES if path.name == f"{stem}.json.gz"
    )
    assert len(TRACES) > 40
    assert len(habit_first) > 2
    assert habit_first[0].habit
    assert sync_first[0].findings
    assert not nothing
