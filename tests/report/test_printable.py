"""Characters that a terminal would obey are replaced, and names stand on one line, short."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan.report.printable import printable, shown


def test_what_a_terminal_would_obey_is_replaced() -> None:
    """Escape, bell, line feeds and bidirectional overrides."""
    assert printable("a\x1b[2J\x07\n\u202eb") == "a�[2J���b"


def test_lines_stay_lines_where_that_is_asked_for() -> None:
    """An error's message may have several."""
    assert printable("a\x1b\nb\r", lines=True) == "a�\nb�"


def test_a_long_text_loses_its_end() -> None:
    """An ellipsis stands for it, and counts."""
    assert [printable("abcdef", limit) for limit in (0, 5, 6)] == ["abcdef", "abcd…", "abcdef"]


ANYTHING = st.text(st.characters(codec=None, exclude_categories=()), max_size=400)


@given(ANYTHING)
def test_any_name_becomes_harmless_text(name: str):
    """Every plane, lone surrogates and direction marks: the result is UTF-8, one line, and at most 300 long."""
    text = shown(name)
    assert text.encode().decode() == text
    assert len(text) <= 300
    assert {unicodedata.category(c) for c in text if c not in "\u200c\u200d"}.isdisjoint({"Cc", "Cf", "Cs", "Zl", "Zp"})


@pytest.mark.parametrize("name", ["aten::nonzero", "损失 函数", "nn.Module: Détecteur_0", "👩‍🔬"])
def test_honest_names_stay_as_they_are(name: str):
    """Letters of any script and joined emoji aren't touched."""
    assert shown(name) == name


def test_a_long_name_loses_its_middle():
    """Begin and end stay: that is where names differ."""
    assert shown("begin" + "x" * 500 + "end", limit=20) == "beginxxxxxxxx…xxxend"
