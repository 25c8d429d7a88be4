"""From a node of a syntax tree to the nodes in it: as `ast.walk`, faster on trees that are read often."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_KEPT = "_children"
"""Where a node keeps its children; no field of Python's has this name."""


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below a node, in their order; without those that say no more than a word: `Load`, `Add`."""
    inside = node.__dict__
    found: list[ast.AST] | None = inside.get(_KEPT)
    if found is None:
        found = []
        for value in inside.values():
            if isinstance(value, ast.AST):
                found.append(value)
            elif type(value) is list:
                found += [part for part in value if isinstance(part, ast.AST)]
        found = [part for part in found if part._fields]
        inside[_KEPT] = found
    return found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it."""
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        todo += children(node)


def walk_own(scope: ast.AST) -> Iterator[ast.AST]:
    """A module and all below it, without the bodies of its functions and classes; a function and all below it."""
    if not isinstance(scope, ast.Module):
        yield from walk(scope)
        return
    todo: list[ast.AST] = [scope]
    while todo:
        node = todo.pop()
        yield node
        todo += [n for n in children(node) if not isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
