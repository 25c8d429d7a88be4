"""The text of a Python file, with its encoding, byte order mark and line ends."""

from __future__ import annotations

import ast
import re
import tokenize
from bisect import bisect_right
from functools import cached_property
from io import BytesIO
from pathlib import Path

import msgspec

_LINE_END = re.compile("\r\n|\r|\n")
"""Line ends as Python sees them; `str.splitlines` also splits at form feeds."""


class Text(msgspec.Struct, frozen=True, dict=True):
    path: str
    """Absolute where it was read; for lint as it was named."""
    text: str
    """As it is in the file, line ends too."""
    encoding: str = "utf-8"

    @property
    def data(self) -> bytes:
        return self.text.encode(self.encoding)

    @property
    def marked(self) -> str:
        """The text with the byte order mark that begins its file, if one does."""
        return f"\ufeff{self.text}" if self.encoding == "utf-8-sig" else self.text

    @cached_property
    def line_end(self) -> str:
        """The line end of its first line."""
        match = _LINE_END.search(self.text)
        return match.group() if match else "\n"

    @cached_property
    def starts(self) -> list[int]:
        """Start of each line, in characters."""
        return [0, *(match.end() for match in _LINE_END.finditer(self.text))]

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends."""
        return _LINE_END.split(self.text)

    @cached_property
    def width(self) -> int:
        """Length that a new line may have: that of the longest line, but at least 79 and at most 120."""
        return min(120, max(79, *map(len, self.lines)))

    def offset(self, line: int, column: int) -> int:
        """Return the position of a character; lines count from 1, columns in bytes of UTF-8, as `ast` does."""
        before = self.lines[line - 1].encode()[:column].decode()
        return self.starts[line - 1] + len(before)

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return the start and end of a node, in characters."""
        assert isinstance(node, ast.expr | ast.stmt | ast.keyword | ast.arg)
        begin = self.offset(node.lineno, node.col_offset)
        return begin, self.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def code(self, node: ast.AST) -> str:
        begin, end = self.span(node)
        return self.text[begin:end]

    def line_of(self, offset: int) -> int:
        """Return the number of the line that a character lies in, from 1."""
        return bisect_right(self.starts, offset)

    def begins_its_line(self, statement: ast.stmt) -> bool:
        begin, _ = self.span(statement)
        return not self.text[self.starts[statement.lineno - 1] : begin].strip()

    def ends_its_line(self, statement: ast.stmt) -> bool:
        """Return whether nothing but a comment stands behind a statement on its last line."""
        _, end = self.span(statement)
        line = self.line_of(end) - 1
        rest = self.lines[line][end - self.starts[line] :].strip()
        return not rest or rest.startswith("#")

    def indent(self, node: ast.stmt) -> str:
        """Return the white space before a statement's first line."""
        line = self.lines[node.lineno - 1]
        return line[: len(line) - len(line.lstrip())]


def read(path: str) -> Text:
    """Return a file's text; OSError, SyntaxError, UnicodeDecodeError or LookupError where it has none."""
    return decoded(str(Path(path).absolute()), Path(path).read_bytes())


def decoded(path: str, data: bytes) -> Text:
    """Return a file's text in the encoding that it declares, or in UTF-8."""
    encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
    return Text(path, data.decode(encoding), encoding)
