"""From what a line called to the rule and its words."""

from __future__ import annotations

import pytest

from syncscan import api
from syncscan.guarding.seen import GuardedSync
from syncscan.testing import advice


def test_every_word_leads_to_a_rule_that_exists() -> None:
    """With code that can be used instead."""
    named = {*advice._RULES.values(), *advice._KINDS.values()}
    assert named <= {rule.id for rule in api.rules()}
    assert [rule for rule in named if "Instead" not in advice.instead(rule)] == []


@pytest.mark.parametrize(
    ("kind", "called", "rule"),
    [
        ("stream", "item", "item"),
        ("stream", "masked_select", "masked-select"),
        ("stream", "float", "item"),
        ("copy", "copy_", "pageable-readback"),
        ("event", "synchronize", "explicit-sync"),
        ("call", "empty_cache", "empty-cache"),
        ("stream", "my_own", ""),
        ("stream", "", ""),
    ],
)
def test_a_rule_by_what_was_called(kind: str, called: str, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its own name, or by the table; none is guessed for others."""
    monkeypatch.setattr(GuardedSync, "called", called)
    assert advice.rule_of(GuardedSync(kind, "train.py", 1, "step", (), "MainThread", 0)) == rule
    assert (advice.instead(rule) == "") is (rule == "")
