"""Make text from a trace, path or error safe to show, and a name short enough to read."""

from __future__ import annotations

import re
import unicodedata

_IN_CODE = re.compile("([\t\f\n]|\r(?=\n))")
"""Control characters that a patch needs as they are."""


def printable(text: str, limit: int = 0, lines: bool = False) -> str:
    """Return text with each control and format character replaced, but ends of lines if `lines`; limit 0 is none."""
    safe = "".join(c if c.isprintable() or (lines and c == "\n") else "\ufffd" for c in text)
    return safe[: limit - 1] + "…" if limit and len(safe) > limit else safe


def printable_code(text: str) -> str:
    """Return code with its lines and tabs, and each other control and format character replaced."""
    return "".join(part if k % 2 else printable(part) for k, part in enumerate(_IN_CODE.split(text)))


LIMIT = 300
"""Characters of a name that are shown at most."""

_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories that change how nearby text is read: controls, direction marks, surrogates, line ends."""
_JOINERS = frozenset("\u200c\u200d")
"""Format characters that words and emoji need."""


def shown(name: str, limit: int = LIMIT) -> str:
    """Return the name on one line: unsafe characters become U+FFFD, a long name loses its middle.

    The result encodes as UTF-8 though a name may hold lone surrogates, and neither reorders nor hides what stands
    beside it; it isn't escaped for any markup.
    """
    if len(name) <= limit and name.isprintable():  # nearly every one of the hundred thousands in a copy
        return name
    name = _shorten(name, limit)
    return "".join(" " if c in "\t\n\r" else c if _safe(c) else "\ufffd" for c in name)


def _safe(c: str) -> bool:
    return c in _JOINERS or unicodedata.category(c) not in _UNSAFE


def _shorten(name: str, limit: int) -> str:
    if len(name) <= limit:
        return name
    tail = (limit - 1) // 3
    return f"{name[: limit - 1 - tail]}…{name[len(name) - tail :]}"
