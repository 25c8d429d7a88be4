"""Turn untrusted text into Markdown that shows it literally: no markup, link, mention or HTML."""

from __future__ import annotations

import re

from syncscan.report.shown_names import shown

_SPECIAL = re.compile(r"([\\`*_\[\]#|~$])")
_BREAK = "\u200b"
"""Zero-width space that keeps GitHub from turning text into a mention, a reference or a bare link."""
_LINKING = re.compile(r"(@|#|GH-)(?=\S)", re.IGNORECASE)
_BARE_LINK = re.compile(r"(?<=www)\.|:(?=//)|(?<=mailto):|(?<=xmpp):", re.IGNORECASE)
"""Where GitHub detects a bare link: the dot or colon is escaped, and the text before it separated (cmark-gfm,
extensions/autolink.c)."""
_TEXT, _NAME = 600, 160


def escaped(text: str, limit: int = _TEXT) -> str:
    """Return text as Markdown prose on one line, with every mark escaped."""
    text = _LINKING.sub(rf"\1{_BREAK}", shown(text, limit))
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _BARE_LINK.sub(rf"{_BREAK}\\\g<0>", _SPECIAL.sub(r"\\\1", text))


def code(text: str, limit: int = _NAME) -> str:
    """Return text as a code span with a fence that nothing in it can close; empty for empty text."""
    text = shown(text, limit).strip()
    if not text:
        return ""
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def cell(text: str, limit: int = _NAME) -> str:
    """Return text as a code span in a table cell, with bars escaped: they end a cell even in code."""
    return code(text, limit).replace("|", "\\|")
