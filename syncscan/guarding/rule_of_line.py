"""Find the rule of a guarded sync by what its line called, and the reason of a comment there."""

from __future__ import annotations

import linecache
from functools import lru_cache

from syncscan.facts.allow_comments import Comment, comments_in
from syncscan.guarding.seen import GuardedSync

_RULES = {
    "float": "item",
    "int": "item",
    "complex": "item",
    "if": "tensor-bool",
    "bool": "tensor-bool",
    "[]": "boolean-index",
    "[]=": "boolean-assign",
    "in": "contains",
    "format": "print-tensor",
    "print": "print-tensor",
    "to": "to-device",
    "cuda": "to-device",
    "tensor": "tensor-constructor",
    "as_tensor": "tensor-constructor",
    "synchronize": "explicit-sync",
    "clip_grad_norm_": "clip-grad",
    "unique_consecutive": "unique",
    "argwhere": "nonzero",
}
"""Names that a line calls → rule, where the names differ."""
_NAMED_ALIKE = frozenset(
    "allclose barrier bincount coalesce cpu ctc-loss empty-cache equal histc item masked-select nonzero one-hot"
    " pin-memory repeat-interleave tolist unique".split()
)
"""Rules with the name of what a line calls."""
_KINDS = {"device": "explicit-sync", "event": "explicit-sync", "copy": "pageable-readback"}
_TELLABLE = frozenset(_RULES.values()) | _NAMED_ALIKE | frozenset(_KINDS.values())
_NOT_TOLD_APART = (
    frozenset({"to-device", "pageable-readback", "cpu"}),  # which way a copy goes
    frozenset({"print-tensor", "item"}),  # how many values the tensor has
)


def rule_of(sync: GuardedSync) -> str:
    """Return the rule of a guarded sync, by what its line called; "" where that is ambiguous.

    A trace is more precise: a guard sees neither ops nor copies.
    """
    if sync.rule:
        return sync.rule
    if sync.kind in _KINDS:
        return _KINDS[sync.kind]
    rule = sync.called.replace("_", "-")
    return _RULES.get(sync.called, rule if rule in _NAMED_ALIKE else "")


def written_reason(sync: GuardedSync) -> str:
    """Return the reason of a comment `# syncscan: allow[RULE] reason` on a sync's line; "" where none allows it.

    A comment allows what its rules may be: without a rule, with one that a guard can't recognize, or on a line whose
    rule it can't determine, any sync.
    """
    comment = comment_at(sync.file, sync.line)
    return comment.reason if comment and comment.reason and _may_be(comment.rules, sync) else ""


def _may_be(rules: tuple[str, ...], sync: GuardedSync) -> bool:
    if not rules or "*" in rules or not _TELLABLE.issuperset(rules):
        return True
    rule = rule_of(sync)
    alike = next((group for group in _NOT_TOLD_APART if rule in group), {rule})
    return not rule or not alike.isdisjoint(rules)


def comment_at(file: str, line: int) -> Comment | None:
    """Return the comment that allows something on a line; None without one."""
    return _comments(file).get(line)


@lru_cache(1 << 10)
def _comments(file: str) -> dict[int, Comment]:
    """Return the comments of a source file, by line; empty where it can't be read."""
    return {comment.line: comment for comment in comments_in("".join(linecache.getlines(file)))}
