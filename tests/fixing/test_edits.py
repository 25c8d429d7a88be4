"""Edits of a text that keep its lines and comments."""

from __future__ import annotations

import ast

import pytest

from syncscan.fixing.edits import Clash, Draft
from syncscan.source.text import Text


def _drafts() -> tuple[Draft, Draft, ast.Call]:
    """Return two drafts of `f(g(x))`, of which the second changes the inner call, and the outer call."""
    text = Text("", "f(g(x))")
    call = ast.parse(text.text, mode="eval").body
    assert isinstance(call, ast.Call)
    inner = Draft(text)
    inner.replace(call.args[0], "y")
    return Draft(text), inner, call


@pytest.mark.parametrize("outer_first", [True, False])
def test_new_words_for_a_node_clash_with_a_change_inside_of_it(outer_first: bool) -> None:
    """In either order, since one of both changes would be lost."""
    outer, inner, call = _drafts()
    outer.replace(call, "f(g(x), 2)")
    first, second = (outer, inner) if outer_first else (inner, outer)
    with pytest.raises(Clash):
        first.merge(second)


def test_a_template_holds_the_changes_inside_of_its_node() -> None:
    """Its words hold the call's new first argument."""
    outer, inner, call = _drafts()
    outer.replace(call, lambda render: f"{render(call)[:-1]}, w=2)")
    outer.merge(inner)
    assert outer.render(call) == "f(y, w=2)"
