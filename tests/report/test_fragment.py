"""The notebook's fragment: short, and HTML in which only our elements appear."""

from __future__ import annotations

import html.parser
from collections.abc import Callable

import pytest

from syncscan import api
from syncscan.report import fragment, picture
from tests.report.example import HOSTILE, analysis, finding, hostile, typical
from tests.report.test_annotate import story


def test_golden(golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch):
    """The typical analysis looks as kept; its picture is matplotlib's and so differs by version."""
    monkeypatch.setattr(picture, "available", lambda: False)
    golden("fragment.html", fragment.render(typical()))


def test_a_saved_notebook_shows_the_step():
    """As an image in the fragment itself, since code hosts run no script."""
    pytest.importorskip("matplotlib")
    shown = fragment.render(api.analyze_trace(story().trace()))
    assert shown.count('<img style="max-width: 100%" alt="Syncs are the limit · step 2, ') == 1
    assert 'src="data:image/png;base64,iVBOR' in shown


def test_many_findings_are_cut():
    """A cell's output stays readable, and says what it leaves out."""
    text = fragment.render(analysis(*[finding(f"nonzero-{k}") for k in range(50)]))
    assert text.count("<tr") == 21
    assert "… and 30 more" in text


class _Tags(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, tuple[str, ...]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, tuple(name for name, _ in attrs)))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_makes_no_element(text: str):
    """Whatever the names hold, the elements and attributes are ours."""

    def tags(markup: str) -> set[tuple[str, tuple[str, ...]]]:
        parser = _Tags()
        parser.feed(markup)
        return set(parser.seen)

    assert tags(fragment.render(hostile(text))) <= tags(fragment.render(hostile("harmless")))
