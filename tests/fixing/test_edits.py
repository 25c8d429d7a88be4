"""Edits of a text that keep its lines and comments."""

from __future__ import annotations

import ast

import pytest

from syncscan.fixing.edits import Draft, with_argument
from syncscan.fixing.source_text import Text

CALLS = {
    "f()": "f(w=2)",
    "f(a)": "f(a, w=2)",
    "f(a, )": "f(a, w=2, )",
    "f((a))": "f((a), w=2)",
    "f((a), )": "f((a), w=2, )",
    "f(a,\n  b=1,  # last\n)": "f(a,\n  b=1, w=2,  # last\n)",
    "f(\n    (a),  # only\n)": "f(\n    (a), w=2,  # only\n)",
    "f(g(x))": "f(g(x), w=2)",
    "f(x=(1),  # (\n)": "f(x=(1), w=2,  # (\n)",
}


@pytest.mark.parametrize("source", CALLS)
def test_an_argument_is_added(source: str) -> None:
    """Behind the last one, and in front of a comma or comment that follows it."""
    draft = Draft(Text("", source))
    call = ast.parse(source, mode="eval").body
    assert isinstance(call, ast.Call)
    draft.replace(call, with_argument(call, "w=2"))
    assert draft.render(call) == CALLS[source]
