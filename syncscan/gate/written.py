"""Match the findings of a recording with the comments that allow them, and list comments without a match."""

from __future__ import annotations

from collections.abc import Callable

from syncscan.facts.allow_comments import Comment, comments_in
from syncscan.model.finding import Finding, Source
from syncscan.model.libraries import is_library
from syncscan.model.trace import Trace

Placed = tuple[str, Comment]
"""A comment with its file."""
SourceText = Callable[[str], str | None]
"""Function from a file, as a trace names it, to its text; None where unavailable."""


class Written:
    """Comments in a program's files, each read once."""

    def __init__(self, source_text: SourceText) -> None:
        self._source_text = source_text
        self._names: dict[str, str] = {}
        self._found: dict[str, tuple[Comment, ...]] = {}
        self._met: set[tuple[str, int]] = set()

    def on(self, finding: Finding) -> Comment | None:
        """Return the comment on a finding's line; if it may be on several lines, only if all have one."""
        source = finding.source
        if source is None:
            return None
        text = self._source_text(source.file) or self._source_text(finding.path) or ""
        by_line = {comment.line: comment for comment in self._in(text, source.file)}
        comments = [by_line.get(line) for line in lines_of(source)]
        self._met.update((text, comment.line) for comment in comments if comment)
        return comments[0] if all(comments) else None

    def at(self, line: int, *files: str) -> Comment | None:
        """Return the comment on a line of a file, by the first of its names that leads to its text."""
        file, text = next(((file, text) for file in files if (text := self._source_text(file))), ("", ""))
        comment = next((comment for comment in self._in(text, file) if comment.line == line), None)
        self._met.update({(text, line)} if comment is not None else ())
        return comment

    def met_and_not(self, trace: Trace) -> tuple[list[Placed], list[Placed]]:
        """Return the comments matched by a finding so far, and those that weren't, in the files that a trace names."""
        capture = trace.info.capture
        files = [frame.file for frame in capture.lines.frames]
        files += [frame.file for frame in capture.host.frames] if capture.host else []
        for file in dict.fromkeys(files):
            if not is_library(file):
                self._in(self._source_text(file) or "", file)
        both: tuple[list[Placed], list[Placed]] = ([], [])
        for text, comments in self._found.items():
            for comment in comments:
                both[(text, comment.line) not in self._met].append((self._names[text], comment))
        return both

    def _in(self, text: str, file: str) -> tuple[Comment, ...]:
        """Return the comments of a file, cached by its text, as a trace may have several names for one file."""
        if text not in self._found:
            self._found[text], self._names[text] = comments_in(text), file
        return self._found[text]


def lines_of(source: Source) -> tuple[int, ...]:
    return (source.line,) if source.exact or not source.candidates else source.candidates
