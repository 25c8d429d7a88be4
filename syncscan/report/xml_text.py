"""Make text safe for XML 1.0."""

from __future__ import annotations

import re

from syncscan.report.shown_names import shown

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
NAME = 200
"""Characters of a name."""


def clean(text: str, limit: int = NAME) -> str:
    """Return text without characters that XML 1.0 can't hold; not escaped."""
    return _ILLEGAL.sub("\ufffd", shown(text, limit))
