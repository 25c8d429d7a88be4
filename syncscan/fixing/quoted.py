"""Quote two long texts so that the reader sees where they differ."""

from __future__ import annotations

from itertools import takewhile

MOST = 60
"""Characters of a quotation."""
BEFORE = 20
"""Equal characters that a quotation keeps in front of the first that differs."""


def instead(new: str, old: str) -> str:
    """Return `'loss 2' instead of 'loss 1'`; long texts are cut around the first character that differs."""
    equal = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(new, old, strict=False)))
    begin = 0 if max(len(new), len(old)) <= MOST or equal < MOST - BEFORE else equal - BEFORE
    return f"{_cut(new, begin)} instead of {_cut(old, begin)}"


def _cut(text: str, begin: int) -> str:
    part = text[begin : begin + MOST]
    return f"{'…' if begin else ''}{part!r}{'…' if len(text) > begin + MOST else ''}"
