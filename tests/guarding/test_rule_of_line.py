"""A line's call decides its rule, and the comment on it whether it is allowed."""

from __future__ import annotations

import linecache

import pytest

from syncscan import api
from syncscan.guarding import rule_of_line as rules
from syncscan.guarding.seen import GuardedSync
from syncscan.testing import failure


def test_every_word_leads_to_a_rule_that_exists() -> None:
    """With code that can be used instead."""
    assert {rule.id for rule in api.rules()} >= rules._TELLABLE
    assert [rule for rule in rules._TELLABLE if "Instead" not in failure.instead(rule)] == []


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
    assert rules.rule_of(sync(kind)) == rule


def sync(kind: str, file: str = "train.py") -> GuardedSync:
    return GuardedSync(kind, file, 1, "step", (), "MainThread", 0)


@pytest.mark.parametrize(
    ("kind", "called", "comment", "reason"),
    [
        ("stream", "item", "allow[item] logged", "logged"),
        ("stream", "item", "allow[nonzero, item]: logged", "logged"),
        ("stream", "item", "allow[*] logged", "logged"),
        ("stream", "item", "allow logged", "logged"),
        ("stream", "item", "allow[item]", ""),
        ("stream", "item", "allow[nonzero] the shape", ""),
        ("stream", "item", "allow[log-scalar] logged", "logged"),
        ("stream", "my_own", "allow[nonzero] the shape", "the shape"),
        ("stream", "to", "allow[cpu] read", "read"),
        ("copy", "to", "allow[to-device] sent", "sent"),
        ("copy", "to", "allow[item] sent", ""),
    ],
)
def test_a_comment_allows_what_it_may_be_of(
    kind: str, called: str, comment: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It refuses where the line certainly waits for another rule, and without a reason."""
    monkeypatch.setattr(GuardedSync, "called", called)
    file = f"<{kind} {called} {comment}>"
    text = f"x = y  # syncscan: {comment}\n"
    monkeypatch.setitem(linecache.cache, file, (len(text), None, [text], file))
    assert rules.written_reason(sync(kind, file)) == reason
