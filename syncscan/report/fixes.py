"""Shorten a fix to the lines that a first screen has, never within a sentence and never without saying so."""

from __future__ import annotations

import re
from textwrap import wrap

_SENTENCE = re.compile(r"(?<=[.:;])\s+(?=[A-Z])")


def fitting(fix: str, lines: int, width: int, more: str, least: int = 1) -> str:
    """Return as many whole sentences of a fix as fit, with an ellipsis and the way to the rest if some don't.

    Args:
        fix: the fix in sentences, without control characters.
        lines: room for it; it may be below 1.
        width: the width of a line, in characters.
        more: how to see the rest, such as `-v`.
        least: sentences that are returned whether they fit or not.
    """
    sentences = _SENTENCE.split(fix)
    for count in range(len(sentences), least, -1):
        text = _cut(sentences, count, more)
        if height(text, width) <= lines:
            return text
    return _cut(sentences, least, more) if least else ""


def height(text: str, width: int) -> int:
    """Return how many lines a text takes."""
    return len(wrap(text, width, break_long_words=False))


def _cut(sentences: list[str], count: int, rest: str) -> str:
    more = f" … ({rest})" if count < len(sentences) else ""
    return f"{' '.join(sentences[:count])}{more}"
