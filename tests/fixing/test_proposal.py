"""How many lines a change may add."""

from __future__ import annotations

import ast

import pytest

from syncscan.fixing.edits import Draft
from syncscan.fixing.proposal import Proposal, by_hand, is_too_long
from syncscan.source.text import Text


def proposal(lines: int, places: int = 1, *, shared: bool = False) -> Proposal:
    """A change of these places that adds lines behind a statement."""
    text = Text("train.py", "a = loss.item()\n")
    statement = ast.parse(text.text).body[0]
    draft = Draft(text)
    draft.put_behind(statement, *(f"read({k})" for k in range(lines)))
    further = tuple(ast.parse("x").body[0] for _ in range(places - 1))
    return Proposal(
        node=statement,
        draft=draft,
        rule="item",
        rewrite="",
        change="read it later",
        waits=9,
        group=further,
        shared=shared,
    )


@pytest.mark.parametrize(
    ("lines", "places", "shared", "too_long"),
    [(2, 1, False, False), (3, 1, False, True), (4, 2, False, False), (3, 2, True, True), (2, 2, True, False)],
)
def test_two_lines_may_be_added_for_each_place(lines: int, places: int, shared: bool, too_long: bool) -> None:
    """A wait that stays for several places together doesn't count as a place."""
    assert is_too_long(proposal(lines, places, shared=shared)) is too_long


def test_the_reason_holds_the_lines() -> None:
    """A change that is left to the author says what to write."""
    assert by_hand(proposal(2)) == "it would take 2 more lines: to read it later, add `read(0)`; `read(1)`"
