"""From text that a trace, a path or an error holds to text that a terminal shows and doesn't obey."""

from __future__ import annotations


def printable(text: str, limit: int = 0, lines: bool = False) -> str:
    """Text with each control and format character replaced.

    Args:
        text: any string.
        limit: characters that are left at most; 0 for all.
        lines: keep the ends of lines.
    """
    safe = "".join(c if c.isprintable() or (lines and c == "\n") else "\ufffd" for c in text)
    return safe[: limit - 1] + "…" if limit and len(safe) > limit else safe
