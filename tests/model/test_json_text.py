"""Whatever was parsed can be written as JSON that strict readers take."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan.model.json_text import DEEPEST, strict_text

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters()), inner, max_size=4),
)


def read(text: str) -> Any:
    """Return the value as a strict reader parses it."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} isn't JSON")

    return json.loads(text.encode(), parse_constant=refuse)


@given(values)
def test_any_value(value: Any) -> None:
    """It comes back as it was where JSON has it, and can be written again as it then is."""
    text = strict_text(value)
    assert strict_text(read(text)) == text
    if "NaN" not in (usual := json.dumps(value)) and "Infinity" not in usual and "\\ud" not in usual:
        assert read(text) == value


def test_what_json_lacks() -> None:
    """Non-numbers and endless ones are null, halves of characters U+FFFD."""
    assert read(strict_text([math.nan, -math.inf, 10**5000, "\ud800x", {"\udfff": 1}])) == [
        None,
        None,
        None,
        "\ufffdx",
        {"\ufffd": 1},
    ]


@pytest.mark.parametrize("limit", [1000, 20_000])
def test_depth(limit: int) -> None:
    """Parts nested too deep for a reader are left out, however deep this Python could go."""
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(limit)
    try:
        text = strict_text(deep)
    finally:
        sys.setrecursionlimit(before)
    content, depth = read(text), 0
    while content is not None:
        content, depth = content[0], depth + 1
    assert depth == DEEPEST
