"""Format an excerpt of a source file: lines numbered, cut to length, flagged ones marked."""

from __future__ import annotations

from syncscan.model.finding import Excerpt
from syncscan.report.printable import printable

LONGEST = 160
"""Characters of a line that are shown; control characters are replaced."""


def numbered(excerpt: Excerpt) -> list[str]:
    """Return the lines without their common indentation, flagged ones marked: `> 52 | total += loss.item()`."""
    expanded = [text.expandtabs(4).rstrip() for text in excerpt.lines]
    indent = min((len(text) - len(text.lstrip()) for text in expanded if text), default=0)
    digits = len(str(excerpt.first + len(expanded) - 1))
    return [
        f"{'>' if number in excerpt.marked else ' '} {number:{digits}} | {printable(text[indent:], LONGEST)}".rstrip()
        for number, text in enumerate(expanded, excerpt.first)
    ]


NEWER = "(the file is newer than the trace: lines may have moved)"
"""Note on a file newer than the trace; it may have been changed, or only cloned or installed, since."""
