"""The text of a Python file, with its encoding, byte order mark and line ends."""

from __future__ import annotations

import ast
import contextlib
import re
import tokenize
from collections.abc import Iterable
from functools import cached_property
from io import BytesIO
from pathlib import Path

import msgspec

from syncscan.fixing.printed_lines import numbers

_LINE_END = re.compile("\r\n|\r|\n")
"""Line ends as Python sees them; `str.splitlines` also splits at form feeds."""
_APPLE = re.compile(rb"""["']mps(:\d+)?["']|\bmps\b\.|\.mps\b|\baccelerator\.current_accelerator\b""")


class Text(msgspec.Struct, frozen=True, dict=True):
    path: str
    """Absolute."""
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
        from bisect import bisect_right

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


def names_apple(path: str) -> bool:
    """Return whether a file names Apple's device, which has no double precision: `mps`, or whatever there is."""
    try:
        return _APPLE.search(Path(path).read_bytes()) is not None
    except OSError:  # the name of code that is in no file
        return False


def read(path: str) -> Text:
    """Return a file's text; OSError, SyntaxError, UnicodeDecodeError or LookupError where it has none."""
    data = Path(path).read_bytes()
    encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
    return Text(str(Path(path).absolute()), data.decode(encoding), encoding)


def shown_path(path: str) -> str:
    """Return a path relative to the working directory if it lies below."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return path


def source_numbers(paths: Iterable[str], arguments: Iterable[str]) -> frozenset[float]:
    """Return the numbers in a program's readable files, in their strings too, and in its arguments."""
    texts = list(arguments)
    for path in paths:
        with contextlib.suppress(OSError):
            texts.append(Path(path).read_text(encoding="utf-8", errors="replace"))
    return frozenset(float(number) for text in texts for number in numbers(text))
