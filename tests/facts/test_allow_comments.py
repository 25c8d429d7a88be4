"""Comments of some forms allow a sync, and the rest are no comments to syncscan."""

from __future__ import annotations

from syncscan.facts.allow_comments import comments_in


def test_what_a_comment_says() -> None:
    """Rules and reason, on its own line or above the next; without a rule or a reason it counts for nothing."""
    text = (
        "x = 1  # syncscan: allow[item] why\n"
        "# syncscan: allow[nonzero,unique]: both\n"
        "y = '# syncscan: allow[item] no comment'\n"
        "z = 2  # syncscan: allow[item]\n"
        "w = 3  # SyncScan: allow reason only\n"
    )
    matches = [(c.line, c.rules, c.reason, c.counts) for c in comments_in(text)]
    assert matches == [
        (1, ("item",), "why", True),
        (3, ("nonzero", "unique"), "both", True),
        (4, ("item",), "", False),
        (5, (), "reason only", False),
    ]
    assert comments_in("x = ('''  # syncscan: allow[item] x") == ()
