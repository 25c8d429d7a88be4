"""From the name of a source file in a trace to its syntax tree, where the file is the program's own and at hand."""

from __future__ import annotations

import ast
import stat
from functools import lru_cache
from pathlib import Path

from syncscan.model.finding import Source

MAX_BYTES = 4_000_000
"""No source file that somebody wrote is longer."""


def tree_of(file: str) -> ast.Module | None:
    """A source file parsed; None for any but a program's own: the trace says which, and may name whatever it likes.

    Args:
        file: its name; read is only a regular file below the working directory, of `MAX_BYTES` at most.
    """
    try:
        path, root = Path(file).resolve(), Path.cwd().resolve()
        return _parsed(path) if path.suffix == ".py" and path.is_relative_to(root) else None
    except (OSError, ValueError, RuntimeError):  # a name that is none, links in a circle
        return None


def function_with(tree: ast.Module, source: Source) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The innermost function of this name that holds the line; one of a decorator is the function's too."""
    found = None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == source.function:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first <= source.line <= (node.end_lineno or node.lineno):
                found = node
    return found


@lru_cache(maxsize=64)
def _parsed(path: Path) -> ast.Module | None:
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_BYTES:
            return None
        return ast.parse(path.read_bytes())
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return None


__all__ = ["MAX_BYTES", "function_with", "tree_of"]
