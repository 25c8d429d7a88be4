"""End a program's loops after the last required step, so that the code after them runs too.

Each loop of the user's files asks at the start of each turn whether it is over. When the last step is done, the loops
that are running are over: each finishes its turn, and the program goes on behind it.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections import Counter
from types import FrameType

OVER = "_syncscan_over_"
"""Name of the question among the builtins."""


class LoopEnds:
    """Ends the loops of a program; a loop that begins after the last step takes `most` turns."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._loops: dict[str, list[tuple[int, int, int]]] = {}
        """First and last line of each loop's body, and its number, by file."""
        self._count = 0
        self._ended: set[tuple[int, int]] = set()
        self._turns: Counter[tuple[int, int]] = Counter()
        self.is_over = False

    def install(self) -> None:
        """Put the question among the builtins."""
        setattr(builtins, OVER, self._asked)

    def with_questions(self, tree: ast.Module, path: str) -> ast.Module:
        """Return a module whose loops ask in each turn whether they are over."""
        loops = self._loops.setdefault(path, [])
        for node in ast.walk(tree):
            if isinstance(node, ast.For | ast.While):
                self._count += 1
                loops.append((node.body[0].lineno, node.end_lineno or node.lineno, self._count))
                node.body.insert(0, _question(self._count, node.body[0]))
        return tree

    def end(self) -> bool:
        """End the loops that are running; return whether there are any."""
        self.is_over = True
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            for first, last, number in self._loops.get(frame.f_code.co_filename, ()):
                if first <= frame.f_lineno <= last:
                    self._ended.add((id(frame), number))
            frame = frame.f_back
        return bool(self._ended)

    def _asked(self, number: int) -> bool:
        if not self.is_over:
            return False
        key = id(sys._getframe(1)), number
        self._turns[key] += 1
        return key in self._ended or self._turns[key] > self._most


def _question(number: int, first: ast.stmt) -> ast.stmt:
    call = ast.Call(ast.Name(OVER, ast.Load()), [ast.Constant(number)], [])
    question = ast.copy_location(ast.If(call, [ast.Break()], []), first)
    return ast.fix_missing_locations(question)
