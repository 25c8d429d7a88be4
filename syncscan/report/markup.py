"""From hostile text to Markdown that shows it and does nothing else: no markup, link, mention or HTML."""

from __future__ import annotations

import re

from syncscan.report.names import shown

_SPECIAL = re.compile(r"([\\`*_\[\]#|~$])")
_BREAK = "\u200b"
"""Zero-width space: in a mention, a reference or a bare link it keeps GitHub from making one, invisibly."""
_LINKING = re.compile(r"(@|#|GH-|www\.|://)(?=\S)", re.IGNORECASE)
_TEXT, _NAME = 600, 160


def escaped(text: str) -> str:
    """Text as Markdown prose on one line: every mark stands for itself."""
    text = _LINKING.sub(rf"\1{_BREAK}", shown(text, _TEXT))
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", text)


def code(text: str, limit: int = _NAME) -> str:
    """Text as a code span, with a fence that nothing in it can close; empty for empty text."""
    text = shown(text, limit).strip()
    if not text:
        return ""
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def cell(text: str, limit: int = _NAME) -> str:
    """Text as a code span in a table, where a bar would end the cell even inside of code."""
    return code(text, limit).replace("|", "\\|")
