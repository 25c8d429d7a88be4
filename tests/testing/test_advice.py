"""Each rule has its words."""

from __future__ import annotations

from syncscan.testing import failure


def test_what_to_write_instead() -> None:
    """The rule's sentence and code; nothing of no rule."""
    assert "syncscan explain item" in failure.instead("item")
    assert failure.instead("") == ""
