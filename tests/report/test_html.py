"""The HTML report: one file that loads nothing, in which no name of a trace is ever more than text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from syncscan import api
from syncscan.model.analysis import Analysis
from syncscan.model.step import Bound
from syncscan.model.view import View
from syncscan.report import html
from syncscan.report.front import front_of
from syncscan.report.page import prose
from tests.builder import TraceBuilder
from tests.recordings import analyzed
from tests.report.example import HOSTILE, analysis, finding, hostile, remedy, typical

SAMPLES = Path(__file__).parents[2] / "sample_traces"


class Page(HTMLParser):
    """A document as a browser sees it: its tags with the names of their attributes, its text, its data.

    `code` is left out: backticks, which a name may hold, make it.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.attributes: list[tuple[str, str]] = []
        self.inside: dict[str, str] = {}
        self.text: list[str] = []
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "code":
            self.tags.append((tag, tuple(name for name, _ in attrs)))
        self.attributes += [(name, value or "") for name, value in attrs]
        self._open = dict(attrs).get("id") or tag

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        self.inside[self._open] = self.inside.get(self._open, "") + data
        self.text.append(data)

    @property
    def policy(self) -> str:
        """The Content-Security-Policy."""
        return next(value for name, value in self.attributes if value.startswith("default-src"))


def step(**changes: Any) -> Analysis:
    """A real analysis: three steps in which a nonzero holds the host up and leaves the device idle."""
    t = TraceBuilder(**changes)
    for start in t.steps(3, lasts=2000):
        with t.scope("forward", start + 10, start + 900):
            for k in range(10):
                t.launch("gemm", at=start + 20 + 4 * k, lasts=60)
            t.sync("aten::nonzero", at=start + 100)
        t.launch("head", at=start + 950, lasts=100)
    return api.analyze_trace(t.trace())


def integrity(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def test_golden(golden: Callable[[str, str], None]):
    """The typical analysis looks as kept; style, script and packed data are left out."""
    bare = re.sub(r"(<(style|script)[^>]*>).*?(</\2>)", r"\1\3", html.render(typical()), flags=re.DOTALL)
    golden("report.html", re.sub(r"'sha256-[^']+'", "HASH", bare))


def test_policy_allows_the_report_s_own_script_and_style_alone():
    """The Content-Security-Policy lets nothing load, and names script and style by the hash of what is there."""
    page = Page(html.render(step()))
    assert page.policy == (
        f"default-src 'none'; script-src {integrity(page.inside['script'])}; "
        f"style-src {integrity(page.inside['style'])}; base-uri 'none'; form-action 'none'"
    )


def test_nothing_is_loaded_from_anywhere():
    """No attribute and no style refers to anything outside of the file."""
    page = Page(html.render(step()))
    assert [pair for pair in page.attributes if pair[0] in ("src", "srcset", "action", "formaction", "style")] == []
    assert {value[0] for name, value in page.attributes if name == "href"} == set()
    assert re.findall(r"@import|url\((?!#)", page.inside["style"]) == []
    assert (
        re.findall(r"\b(fetch|XMLHttpRequest|WebSocket|import|eval|innerHTML|outerHTML)\b", page.inside["script"]) == []
    )


@pytest.mark.parametrize("text", [t for t in HOSTILE if t], ids=ascii)
def test_a_hostile_name_is_text(text: str):
    """Whatever stands in a trace's names, the document has the tags and attributes that it has with a plain name."""
    document = html.render(hostile(text))
    assert document.encode()
    assert Page(document).tags == Page(html.render(hostile("plain"))).tags
    assert json.loads(Page(document).inside["data"])["labels"]


@pytest.mark.parametrize("text", [t for t in HOSTILE if t], ids=ascii)
def test_a_hostile_name_in_the_timeline_is_text(text: str):
    """It holds for names of scopes, ops and kernels in the timeline's data."""
    t = TraceBuilder()
    with t.scope(text, 0, 100):
        t.op(text, 1, 20)
        t.launch(text, at=30, lasts=10)
        t.sync("aten::nonzero", at=50)
    page = Page(html.render(api.analyze_trace(t.trace())))
    assert len([tag for tag, _ in page.tags if tag == "script"]) == 2
    assert not re.search(r"[<>&]", page.inside["data"])
    assert max(map(len, json.loads(page.inside["data"])["names"])) <= 200


def test_a_name_of_ten_thousand_characters_is_shortened():
    """Long names don't make long documents: they lose their middle."""
    assert len(html.render(hostile("x" * 10_000))) < len(html.render(hostile("plain"))) + 35_000


def test_the_top_says_verdict_and_what_to_do():
    """Verdict, why, the first change with its finding, how sure that is, and the next command."""
    analysis = step()
    first, document = front_of(analysis), html.render(analysis)
    page = Page(document)
    assert ("data-finding", "0") in page.attributes
    assert f'<code class="command"><bdi>{shlex.join(first.next)}</bdi></code>' in document
    text = "".join(page.text)
    assert first.verdict.startswith("Syncs are the limit: ")
    for part in (first.verdict, first.together, first.changes[0].becomes, first.changes[0].amount):
        assert part in text
    assert first.changes[0].place in text
    assert f"{first.sure.title()}: {first.why_sure[:1].lower()}{first.why_sure[1:]}" in text


def test_each_change_leads_to_its_finding_or_to_its_habit():
    """By their numbers on the page."""
    document = html.render(typical())
    cards = set(re.findall(r'<li id="([fh]\d+)"', document))
    for number, habit in re.findall(r'class="item change"[^>]*data-finding="(\d*)" data-habit="(\d*)"', document):
        assert (f"f{number}" if number else f"h{habit}") in cards


def test_a_tab_without_content_is_not_there():
    """Each has its panel, hidden until it is opened."""
    tabs = [re.findall(r'role="tab" id="tab-(\w+)"', html.render(of)) for of in (step(), analysis())]
    assert tabs == [["timeline", "findings", "host", "kernels", "about"], ["timeline", "findings", "kernels", "about"]]
    document = html.render(step())
    for tab in tabs[0]:
        assert re.search(rf'id="panel-{tab}"[^>]* hidden>', document)


def test_the_first_tab_follows_the_limit():
    """Kernels where the device is the limit, and else the timeline."""
    opened = re.compile(r'id="tab-(\w+)"[^>]* data-opened')
    assert opened.findall(html.render(step())) == ["timeline"]
    busy = replace(step(), step=replace(step().step, bound=Bound.DEVICE))
    assert opened.findall(html.render(busy)) == ["kernels"]


def test_each_set_of_changes_has_its_step():
    """By bits: those that are listed, as they are listed; a later one alone, as it gains alone."""
    several = analyzed(SAMPLES / "pageable.pt.trace.json.gz")
    document = html.render(several)
    changes = front_of(several).changes
    (text,) = re.findall(r'data-after="([^"]*)"', document)
    after = json.loads(unescape(text))
    if len(changes) > 1:
        assert set(after) == {str(mask) for mask in range(1, 1 << len(changes))}
        assert after["1"][0] == pytest.approx(changes[0].after_us)
        assert after["3"][0] == pytest.approx(changes[1].after_us)
    assert 'data-after="{}"' in html.render(step())


def test_a_change_whose_finding_is_not_on_the_page_is_reported_without_a_way_to_it():
    """With many findings, the page has the first ones."""
    many = analysis(*(finding(f"nonzero-{k:08x}") for k in range(350)))
    last = replace(many, remedies=(remedy(findings=(many.findings[-1].id,)),))
    assert "#f349" not in html.render(last)


def test_without_a_projection_nothing_is_promised():
    """An analysis without gains shows waits and no projected number."""
    plain = replace(step(), groups=(), remedies=(), projector=None)
    bare = replace(plain, step=replace(plain.step, recoverable_us=None, recoverable_range_us=None, outlook=None))
    bare = replace(
        bare,
        findings=tuple(
            replace(f, recoverable_us=None, recoverable_range_us=None, moved_us=None) for f in bare.findings
        ),
    )
    document = html.render(bare)
    assert 'class="sp-bar"' not in document
    assert set(re.findall(r'class="info">([^<]*)<', document)) == {"–"}
    assert '"without":[]' in document


def test_a_trace_without_device_work_says_so():
    """The sentence has its end."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=100):
        with t.op("aten::add", start + 10, start + 20):
            pass
    page = html.render(api.analyze_trace(t.trace()))
    assert "The trace has no device work." in page


def test_no_findings_is_reported():
    """A clean trace says so, and shows no table."""
    document = html.render(analysis())
    assert "The host never waits" in document or "The trace has no device work" in document
    assert '<ol id="findings"' not in document


def test_a_finding_holds_explanation_fix_and_evidence():
    """Why, fix, when fine, line, chain and occurrences of a finding are in the page."""
    text = " ".join(Page(html.render(typical())).text)
    for part in (
        "The size of the output depends on the data",
        "Use torch.where(mask, a, b)",
        "Where the selection saves more work",
        "train/detect.py:42",
        "aten::index > aten::nonzero > cudaStreamSynchronize",
    ):
        assert part in text


def test_what_stands_between_backticks_is_code():
    """Rules write code between backticks; the rest stays escaped text."""
    assert prose("use `a < b` <b>") == "use <code>a &lt; b</code> &lt;b&gt;"


def test_an_option_in_a_sentence_stays_on_one_line() -> None:
    """A browser would break it at its hyphens."""
    assert prose("(--step-ms <x>)") == '(<span class="whole">--step-ms</span> &lt;x&gt;)'


def test_many_findings_are_cut():
    """Three hundred findings are shown, and the page says that there are more."""
    many = analysis(*(finding(f"nonzero-{k:08x}") for k in range(350)))
    document = html.render(many)
    assert len(re.findall(r'<li id="f\d+" class="finding', document)) == html.MAX_FINDINGS
    assert "350 findings" in document


def test_a_remedy_and_a_finding_say_which_step_is_drawn_for_them():
    """The first replay is without any sync, which of a single finding is also without it."""
    page = Page(html.render(step()))
    assert json.loads(page.inside["data"])["without"][0]["findings"] == [0]
    assert [value for name, value in page.attributes if name == "data-without"] == ["0", "0"]


def test_what_a_view_hides_is_reported():
    """Beside how the steps were found; a page whose findings are all hidden doesn't say that there are none."""
    outcome = analysis(finding("nonzero"), finding("item"))
    few = html.render(replace(outcome, view=View(top=1)))
    assert "1 finding is hidden by" in few
    assert "1 finding, " in few
    none = html.render(replace(outcome, view=View(select=("cpu",))))
    assert "2 findings are hidden by" in none
    assert "The host never waits" not in none
