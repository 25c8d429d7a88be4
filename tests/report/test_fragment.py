"""The notebook's fragment: short, and HTML in which only our elements appear."""

from __future__ import annotations

import html.parser
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from syncscan import api
from syncscan.report import fragment
from tests.each import each
from tests.recordings import analyzed
from tests.report.example import HOSTILE, analysis, finding, hostile, story, typical

SAMPLES = Path(__file__).parents[2] / "sample_traces"


def test_golden(golden: Callable[[str, str], None]):
    """The typical analysis looks as kept."""
    golden("fragment.html", fragment.render(typical()))


def test_a_saved_notebook_shows_the_step():
    """As an image in the fragment itself, since code hosts run no script."""
    shown = fragment.render(api.analyze_trace(story().trace()))
    assert shown.count('<img style="max-width: 100%" alt="Syncs are the limit') == 1
    assert 'src="data:image/svg+xml;base64,PHN2Zy' in shown


def test_many_findings_are_cut():
    """A cell's output stays readable, and says what it leaves out."""
    text = fragment.render(analysis(*[finding(f"nonzero-{k}") for k in range(50)]))
    assert "… and 30 more" in text


class _Tags(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, tuple[str, ...]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, tuple(name for name, _ in attrs)))


@each("text", HOSTILE)
def test_hostile_text_makes_no_element(text: str):
    """Whatever the names hold, the elements and attributes are ours."""

    def tags(markup: str) -> set[tuple[str, tuple[str, ...]]]:
        parser = _Tags()
        parser.feed(markup)
        return set(parser.seen)

    assert tags(fragment.render(hostile(text))) <= tags(fragment.render(hostile("harmless")))


def test_the_step_before_and_after_stands_above_the_tables() -> None:
    """As an image with its text; where no step can be replayed there is none."""
    text = fragment.render(analyzed(SAMPLES / "logged.pt.trace.json.gz"))
    image = text.index("A step of 16.0 ms; host: works, item waits 4.7")
    assert image < text.index("All findings")
    lacking = fragment.render(replace(analyzed(SAMPLES / "logged.pt.trace.json.gz"), projector=None))
    assert "<img" not in lacking
