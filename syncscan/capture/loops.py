"""A source file's lines go in, the loops that stand around them come out: read from its text, which nothing runs."""

from __future__ import annotations

import ast
import linecache
from typing import NamedTuple


class Loop(NamedTuple):
    """A `for` or `while` by its lines: its header's first, its body's first and its body's last."""

    first: int
    body: int
    last: int

    def holds(self, line: int) -> bool:
        """Whether the line is the header's or the body's."""
        return self.first <= line <= self.last


class Loops:
    """The loops of source files, each file parsed once."""

    def __init__(self) -> None:
        self._of: dict[str, list[Loop]] = {}

    def around(self, file: str, line: int) -> list[Loop]:
        """The loops that hold this line, outermost first; none where the source can't be read.

        Args:
            file: as a code object names it.
            line: counted from 1.
        """
        if file not in self._of:
            self._of[file] = _loops("".join(linecache.getlines(file)))
        return [loop for loop in self._of[file] if loop.holds(line)]


def _loops(source: str) -> list[Loop]:
    """All loops of a source, an outer one before those in it."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    loops = [
        Loop(node.lineno, node.body[0].lineno, node.body[-1].end_lineno or node.body[-1].lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.For | ast.AsyncFor | ast.While)
    ]
    return sorted(loops, key=lambda loop: (loop.first, -loop.last))
