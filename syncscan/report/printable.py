"""Make text from a trace, path or error safe for a terminal."""

from __future__ import annotations

import re

_IN_CODE = re.compile("([\t\f\n]|\r(?=\n))")
"""Control characters that a patch needs as they are."""


def printable(text: str, limit: int = 0, lines: bool = False) -> str:
    """Return text with each control and format character replaced, but ends of lines if `lines`; limit 0 is none."""
    safe = "".join(c if c.isprintable() or (lines and c == "\n") else "\ufffd" for c in text)
    return safe[: limit - 1] + "…" if limit and len(safe) > limit else safe


def printable_code(text: str) -> str:
    """Return code with its lines and tabs, and each other control and format character replaced."""
    return "".join(part if k % 2 else printable(part) for k, part in enumerate(_IN_CODE.split(text)))
