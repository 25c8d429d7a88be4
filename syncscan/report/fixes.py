"""Shorten a fix to the lines that a first screen has, never within a sentence and never without saying so."""

from __future__ import annotations

import re
from textwrap import wrap

_SENTENCE = re.compile(r"(?<=[.:;])\s+(?=[A-Z])")


def fitting(fix: str, lines: int, width: int, more: str, least: int = 1) -> str:
    """Return as many whole sentences of a fix as fit, with an ellipsis and the way to the rest if some don't.

    `lines` may be below 1; `more` is the way to the rest, such as `-v`; `least` sentences come whether they fit or not.
    """
    sentences = _SENTENCE.split(fix)
    for count in range(len(sentences), least, -1):
        text = _cut(sentences, count, more)
        if height(text, width) <= lines:
            return text
    return _cut(sentences, least, more) if least else ""


def height(text: str, width: int) -> int:
    return len(wrap(text, width, break_long_words=False))


def _cut(sentences: list[str], count: int, rest: str) -> str:
    more = f" … ({rest})" if count < len(sentences) else ""
    return f"{' '.join(sentences[:count])}{more}"
