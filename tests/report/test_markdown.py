"""Markdown: a comment that fits, in which text from a trace is text and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable

from syncscan.report import render
from tests.each import each
from tests.report.example import HOSTILE, analysis, finding, hostile, typical


def test_golden(golden: Callable[[str, str], None]):
    """The typical analysis looks as kept."""
    golden("report.md", render(typical(), "markdown"))


def test_no_findings():
    """Nothing found says so."""
    assert "No sync was found." in render(analysis(), "markdown")


def test_a_thousand_findings_fit_a_comment():
    """GitHub's limit is kept, and what is left out is said."""
    text = render(analysis(*[finding(f"nonzero-{k:08x}") for k in range(1000)]), "markdown", verbose=True)
    assert len(text) < 65_536
    assert "… and 950 more." in text
    assert re.search(r"The other \d+ don't fit here", text)


@each("text", HOSTILE)
def test_hostile_text_makes_no_markup(text: str):
    """No HTML but ours, no link, no mention, no further table cell, no control character."""
    out = render(hostile(text), "markdown", verbose=True)
    outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "CODE", out)
    assert set(re.findall(r"<[^>]*>", outside)) <= {
        "<br>",
        "<sub>",
        "</sub>",
        "<details>",
        "</details>",
        "<summary>",
        "</summary>",
    }
    assert not re.search(r"(?<!\\)\]\(", outside)
    assert not re.search(r"@\w|www\.\w|(?<!\\)://\w", outside)
    first = next(k for k, line in enumerate(out.splitlines()) if line.startswith("|--:|"))
    assert len(re.findall(r"(?<!\\)\|", out.splitlines()[first + 1])) == 4
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e\u2066\ud800]", out)
    out.encode()
