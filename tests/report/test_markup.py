"""Markdown's escapes: text shows as it is, and does nothing else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan.report.markup import cell, code, escaped
from tests.each import each


@each(
    ("text", "expected"),
    [
        ("plain words, (brackets) and 50%", "plain words, (brackets) and 50%"),
        ("x[mask]", r"x\[mask\]"),
        ("a_b *c* `d`", r"a\_b \*c\* \`d\`"),
        ("<b> & c", "&lt;b&gt; &amp; c"),
        ("@team see #12", "@\u200bteam see \\#\u200b12"),
        ("https://x.example", "https\u200b\\://x.example"),
        ("see www.x.example", "see www\u200b\\.x.example"),
        ("mailto:a@x.example", "mailto\u200b\\:a@\u200bx.example"),
        ("http\\://x www\\.x", "http\\\\\u200b\\://x www\\\\.x"),
    ],
)
def test_escaped(text: str, expected: str):
    """Marks stand for themselves; mentions, references and bare links are broken, invisibly."""
    assert escaped(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("aten::item", "`aten::item`"), ("a`b", "`` a`b ``"), ("a``b", "``` a``b ```"), ("`", "`` ` ``"), ("", "")],
)
def test_code(text: str, expected: str):
    """The fence is longer than any in the text."""
    assert code(text) == expected


def test_a_bar_stays_in_its_cell():
    """GitHub ends a table's cell at a bar even inside of code."""
    assert cell("a|b") == "`a\\|b`"


@given(st.text())
def test_a_code_span_never_ends_early(text: str):
    """Whatever the text, the span is one line, and its fence occurs at its two ends alone."""
    span = code(text)
    if span:
        fence = re.match(r"`+", span).group()  # type: ignore[union-attr]
        inside = span[len(fence) : -len(fence)]
        assert span.endswith(fence)
        assert fence not in re.findall(r"`+", inside)
        assert "\n" not in span


@given(st.text())
def test_escaped_text_is_one_line_without_elements(text: str):
    """Nothing opens an element, and nothing starts a new block."""
    out = escaped(text)
    assert not re.search(r"[<>\n\r]", out)
    out.encode()
