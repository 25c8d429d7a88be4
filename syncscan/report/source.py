"""Format lines of source: an excerpt, numbered and marked, and the change that `syncscan fix` would make."""

from __future__ import annotations

from syncscan.model.finding import Excerpt
from syncscan.model.fix import Suggested
from syncscan.report.printable import printable

LONGEST = 160
"""Characters of a line that are shown; control characters are replaced."""
LONGEST_OF_DIFF = 200
"""Characters of a line of a diff that are shown."""


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


def caption(suggested: Suggested) -> str:
    """Return one line about a change: the change in a few words, its safety, and whether it was verified."""
    also = f": {suggested.why}" if suggested.why else ""
    verified = "verified by a dry run" if suggested.verified else suggested.how or "not verified"
    return f"syncscan fix would {suggested.change} ({suggested.safety.value}{also}; {verified})."


def diff_lines(suggested: Suggested) -> list[str]:
    lines = suggested.diff.splitlines()
    return [printable(line.expandtabs(4), LONGEST_OF_DIFF) for line in lines if not line.startswith(("--- ", "+++ "))]
