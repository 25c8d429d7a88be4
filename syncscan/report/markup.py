"""From hostile text to Markdown that shows it and does nothing else: no markup, link, mention or HTML."""

from __future__ import annotations

import re

from syncscan.report.names import shown

_SPECIAL = re.compile(r"([\\`*_\[\]#|~$])")
_BREAK = "\u200b"
"""Zero-width space: in a mention, a reference or a bare link it keeps GitHub from making one, invisibly."""
_LINKING = re.compile(r"(@|#|GH-)(?=\S)", re.IGNORECASE)
_BARE_LINK = re.compile(r"(?<=www)\.|:(?=//)|(?<=mailto):|(?<=xmpp):", re.IGNORECASE)
"""Where GitHub finds a link without marks: the dot or colon is escaped, and what stands before it broken off
(cmark-gfm, extensions/autolink.c)."""
_TEXT, _NAME = 600, 160


def escaped(text: str, limit: int = _TEXT) -> str:
    """Text as Markdown prose on one line: every mark stands for itself."""
    text = _LINKING.sub(rf"\1{_BREAK}", shown(text, limit))
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _BARE_LINK.sub(rf"{_BREAK}\\\g<0>", _SPECIAL.sub(r"\\\1", text))


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
