"""Find the loops around a line of a source file, from its text; nothing is run."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from syncscan.source.code_pattern import called
from syncscan.source.tree import Loop, SourceTree, contexts_of, each_round, lines_of, tree_of, walk_own

_SCOPE = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
_NO_GRAD = ("no_grad", "inference_mode")


class LoopLines(NamedTuple):
    """A `for` or `while`: first line of its header, first and last line of its body."""

    first: int
    body: int
    last: int

    def holds(self, line: int) -> bool:
        return self.first <= line <= self.last


class FileLoops(SourceTree):
    """Loops, branches and calls of a file, by line."""

    def around(self, line: int) -> list[LoopLines]:
        """Return the loops around a line, outermost first."""
        return [loop for loop in self._loops if loop.holds(line)]

    def chosen(self, line: int, other: int) -> bool:
        """Return whether a line depends on a condition that another line doesn't depend on."""
        return any(line in branch and other not in branch for branch in self._branches)

    def repeats(self, line: int) -> bool:
        """Return whether its function runs a line several times: in a loop's body, or in a comprehension.

        A `for` loop's header runs once, a `while` loop's each time.
        """
        return line in self._repeated

    def calls(self, first: int, last: int) -> list[str]:
        """Return what is called in these lines, as it is written: `envs.step`."""
        return [name for line, name in self._calls if first <= line <= last]

    def trains_nothing(self, line: int) -> bool:
        """Return whether a line runs without gradients, or behind `eval()` in its function."""
        return any(line in lines for lines in self._untrained)

    @cached_property
    def _loops(self) -> list[LoopLines]:
        loops = (LoopLines(n.lineno, n.body[0].lineno, _of_all(n.body)[-1]) for n in self.nodes if isinstance(n, Loop))
        return sorted(loops, key=lambda loop: (loop.first, -loop.last))

    @cached_property
    def _branches(self) -> list[range]:
        """The lines of each side of an `if`, of a case and of an `except`."""
        sides = [side for n in self.nodes if isinstance(n, ast.If) for side in (n.body, n.orelse) if side]
        sides += [n.body for n in self.nodes if isinstance(n, ast.match_case | ast.ExceptHandler)]
        return list(map(_of_all, sides))

    @cached_property
    def _calls(self) -> list[tuple[int, str]]:
        calls = (n for n in self.nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name | ast.Attribute))
        return [(call.lineno, ast.unparse(call.func)) for call in calls]

    @cached_property
    def _repeated(self) -> frozenset[int]:
        """The lines that a loop of their own function repeats."""
        parts = (part for node in self.nodes for part in each_round(node) if not isinstance(part, _SCOPE))
        return frozenset(line for part in parts for line in lines_of(part))

    @cached_property
    def _untrained(self) -> list[range]:
        """The lines under `no_grad` or `inference_mode`, and those from a call of `eval()` to the next `train()`."""
        lines = [lines_of(n) for n in self.nodes if any(called(mode) in _NO_GRAD for mode in contexts_of(n))]
        return [*lines, *(part for scope in (*self.functions, self.tree) for part in _behind_eval(scope))]


def _of_all(body: list[ast.stmt]) -> range:
    return range(body[0].lineno, lines_of(body[-1]).stop)


def _behind_eval(scope: ast.AST) -> Iterator[range]:
    """Yield the lines of a function, or of a file's own, from each `eval()` on."""
    methods = (n for n in walk_own(scope) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
    switches = sorted(
        (n.lineno, called(n)) for n in methods if called(n) == "train" or (called(n) == "eval" and not n.args)
    )
    end = lines_of(scope).stop or 1 << 30
    for at, (line, name) in enumerate(switches):
        if name == "eval":
            yield range(line, next((other for other, what in switches[at + 1 :] if what == "train"), end))


class Loops(dict[str, FileLoops]):
    """Loops of source files by name, each file parsed once; none where the source can't be read."""

    def __missing__(self, file: str) -> FileLoops:
        source = tree_of("".join(linecache.getlines(file)))
        return self.setdefault(file, FileLoops(source.tree if source else ast.Module([], [])))
