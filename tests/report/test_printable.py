"""Characters that a terminal would obey are replaced."""

from __future__ import annotations

from syncscan.report.printable import printable


def test_what_a_terminal_would_obey_is_replaced() -> None:
    """Escape, bell, line feeds and bidirectional overrides."""
    assert printable("a\x1b[2J\x07\n\u202eb") == "a�[2J���b"


def test_lines_stay_lines_where_that_is_asked_for() -> None:
    """An error's message may have several."""
    assert printable("a\x1b\nb\r", lines=True) == "a�\nb�"


def test_a_long_text_loses_its_end() -> None:
    """An ellipsis stands for it, and counts."""
    assert [printable("abcdef", limit) for limit in (0, 5, 6)] == ["abcdef", "abcd…", "abcdef"]
