"""Format an excerpt of a source file: lines numbered, cut to length, flagged ones marked."""

from __future__ import annotations

import msgspec

from syncscan.model.finding import Excerpt
from syncscan.report.printable import printable

LONGEST = 160
"""Characters of a line that are shown."""


class SourceLine(msgspec.Struct, frozen=True):
    """A line of a source file; control characters are replaced."""

    number: int
    text: str
    flagged: bool


def lines(excerpt: Excerpt) -> tuple[SourceLine, ...]:
    """Return the lines without their common indentation."""
    expanded = [text.expandtabs(4).rstrip() for text in excerpt.lines]
    indent = min((len(text) - len(text.lstrip()) for text in expanded if text), default=0)
    return tuple(
        SourceLine(number, printable(text[indent:], LONGEST), number in excerpt.marked)
        for number, text in enumerate(expanded, excerpt.first)
    )


def numbered(excerpt: Excerpt) -> list[str]:
    """Return the lines as text: `> 52 | total += loss.item()`."""
    source_lines = lines(excerpt)
    digits = len(str(source_lines[-1].number)) if source_lines else 0
    return [f"{'>' if x.flagged else ' '} {x.number:{digits}} | {x.text}".rstrip() for x in source_lines]


NEWER = "(the file is newer than the trace: lines may have moved)"
"""Note on a file newer than the trace; it may have been changed, or only cloned or installed, since."""
