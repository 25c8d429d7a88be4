"""Find the loops around a line of a source file, from its text; nothing is run."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from typing import NamedTuple

_SCOPE = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
_AGAIN: dict[type, tuple[str, ...]] = {
    ast.For: ("body",),
    ast.AsyncFor: ("body",),
    ast.While: ("test", "body"),
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.GeneratorExp), ("elt",)),
    ast.DictComp: ("key", "value"),
}
"""The parts of a loop that each round runs."""


class Loop(NamedTuple):
    """A `for` or `while`: first line of its header, first and last line of its body."""

    first: int
    body: int
    last: int

    def holds(self, line: int) -> bool:
        return self.first <= line <= self.last


class Branch(NamedTuple):
    """Lines of one side of an `if`, of a case or of an `except`."""

    first: int
    last: int

    def holds(self, line: int) -> bool:
        return self.first <= line <= self.last


class Loops:
    """Loops and branches of source files, each file parsed once."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[list[Loop], list[Branch], list[tuple[int, str]]]] = {}
        self._repeated: dict[str, frozenset[int]] = {}
        self._without_training: dict[str, list[Branch]] = {}

    def around(self, file: str, line: int) -> list[Loop]:
        """Return the loops around a line, outermost first; none if the source can't be read."""
        return [loop for loop in self._parse(file)[0] if loop.holds(line)]

    def chosen(self, file: str, line: int, other: int) -> bool:
        """Return whether a line depends on a condition that another line doesn't depend on."""
        return any(b.holds(line) and not b.holds(other) for b in self._parse(file)[1])

    def repeats(self, file: str, line: int) -> bool:
        """Return whether its function runs a line several times: in a loop's body, or in a comprehension.

        A `for` loop's header runs once, a `while` loop's each time.
        """
        return line in self._repeated_lines(file)

    def calls(self, file: str, first: int, last: int) -> list[str]:
        """Return what is called in these lines, as it is written: `envs.step`."""
        return [name for line, name in self._parse(file)[2] if first <= line <= last]

    def trains_nothing(self, file: str, line: int) -> bool:
        """Return whether a line runs without gradients, or behind `eval()` in its function."""
        if file not in self._without_training:
            self._without_training[file] = list(_without_training(_tree("".join(linecache.getlines(file)))))
        return any(lines.holds(line) for lines in self._without_training[file])

    def _repeated_lines(self, file: str) -> frozenset[int]:
        if file not in self._repeated:
            self._repeated[file] = frozenset(_repeated(_tree("".join(linecache.getlines(file)))))
        return self._repeated[file]

    def _parse(self, file: str) -> tuple[list[Loop], list[Branch], list[tuple[int, str]]]:
        if file not in self._of:
            tree = _tree("".join(linecache.getlines(file)))
            self._of[file] = _loops(tree), list(_branches(tree)), list(_calls(tree))
        return self._of[file]


def _tree(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _calls(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield node.lineno, ast.unparse(node.func)


_NO_GRAD = ("no_grad", "inference_mode")


def _without_training(tree: ast.Module) -> Iterator[Branch]:
    """Yield the lines under `no_grad` or `inference_mode`, and those from a call of `eval()` to the next `train()`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.With | ast.AsyncWith) and any(_without_grad(item.context_expr) for item in node.items):
            yield Branch(node.lineno, node.end_lineno or node.lineno)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if any(map(_without_grad, node.decorator_list)):
                yield Branch(node.lineno, node.end_lineno or node.lineno)
            yield from _behind_eval(node, node.end_lineno or node.lineno)
    yield from _behind_eval(tree, 1 << 30)


def _without_grad(node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in _NO_GRAD


def _behind_eval(scope: ast.AST, last: int) -> Iterator[Branch]:
    """Yield the lines of a function, or of a file's own, from each `eval()` on."""
    calls = sorted(_switches(scope))
    for at, (line, name) in enumerate(calls):
        if name == "eval":
            ends = (other - 1 for other, what in calls[at + 1 :] if what == "train")
            yield Branch(line, next(ends, last))


def _switches(scope: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and name of each call of a module's `eval()` or `train()` in a scope, without inner ones."""
    pending = list(ast.iter_child_nodes(scope))
    while pending:
        node = pending.pop()
        if isinstance(node, _SCOPE):
            continue
        name = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
        if isinstance(node, ast.Call) and (name == "train" or (name == "eval" and not node.args)):
            yield node.lineno, name
        pending += ast.iter_child_nodes(node)


def _repeated(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that a loop of their own function repeats."""
    pending: list[tuple[ast.AST, bool]] = [(tree, False)]
    while pending:
        node, within = pending.pop()
        if isinstance(node, _SCOPE):
            within = False
        elif within and isinstance(node, ast.stmt | ast.expr):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
        again = _AGAIN.get(type(node), ())
        pending += [(child, within or field in again) for field, child in _children(node)]


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield field, child


def _branches(tree: ast.Module) -> Iterator[Branch]:
    for node in ast.walk(tree):
        sides = [node.body, node.orelse] if isinstance(node, ast.If) else []
        if isinstance(node, ast.match_case | ast.ExceptHandler):
            sides = [node.body]
        for side in sides:
            if side:
                yield Branch(side[0].lineno, side[-1].end_lineno or side[-1].lineno)


def _loops(tree: ast.Module) -> list[Loop]:
    """Return all loops, outer ones before inner ones."""
    loops = [
        Loop(node.lineno, node.body[0].lineno, node.body[-1].end_lineno or node.body[-1].lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.For | ast.AsyncFor | ast.While)
    ]
    return sorted(loops, key=lambda loop: (loop.first, -loop.last))
