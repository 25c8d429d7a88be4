"""Names out of a trace: shown on one line, short, and without characters that change what stands beside them."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan.report.printable import shown

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
