"""Counts with their noun, for reports."""

from __future__ import annotations


def several(count: int, name: str) -> str:
    """Return `1 line` or `2 lines`.

    Args:
        count: how many.
        name: what one of them is called.
    """
    return f"{count} {name}" + "s" * (count != 1)
