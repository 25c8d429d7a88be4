"""From the name of a source file in a trace to its syntax tree, where the file is the program's own and at hand."""

from __future__ import annotations

import ast
import stat
import tokenize
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from syncscan.model.finding import Source

MAX_BYTES = 4_000_000
"""No source file that somebody wrote is longer."""


Sources = Mapping[str, str] | None
"""File → its text, as a saved analysis keeps them; None to look on the disk."""


def tree_of(file: str, kept: Sources = None) -> ast.Module | None:
    """A source file parsed; None for any but a program's own: the trace says which, and may name whatever it likes.

    Args:
        file: its name; see `text_of`.
        kept: sources that were saved with the trace.
    """
    text = text_of(file, kept)
    return None if text is None else _parsed(text)


def text_of(file: str, kept: Sources = None) -> str | None:
    """The text of a program's source file; None where it isn't at hand.

    Args:
        file: its name; read is only a regular file below the working directory, of `MAX_BYTES` at most.
        kept: sources that were saved with the trace: then nothing is read.
    """
    if kept is not None:
        return kept.get(file)
    try:
        path, root = Path(file).resolve(), Path.cwd().resolve()
        return _read(path) if path.suffix == ".py" and path.is_relative_to(root) else None
    except (OSError, ValueError, RuntimeError, SyntaxError):  # no such name, links in a circle, no such encoding
        return None


def excerpts(sources: Iterable[Source]) -> dict[str, str]:
    """Of each program's file that is at hand its text, all but the functions around these lines left blank.

    Line numbers stay as they are. A method stands without its class, at the beginning of its lines. Comments to
    syncscan stay wherever they are.
    """
    found: dict[str, list[str]] = {}
    for source in sources:
        text, tree = text_of(source.file), tree_of(source.file)
        if text is None or tree is None:
            continue
        lines = text.split("\n")
        kept = found.setdefault(source.file, [_comment(line) for line in lines])
        if function := function_with(tree, source):
            first = min([function.lineno, *(d.lineno for d in function.decorator_list)])
            for number, line in enumerate(lines[first - 1 : function.end_lineno], first):
                kept[number - 1] = line[: function.col_offset].lstrip() + line[function.col_offset :]
    return {file: "\n".join(lines) for file, lines in found.items() if any(lines)}


def _comment(line: str) -> str:
    """The comment to syncscan in a line, behind something if it was; empty without one."""
    before, mark, said = line.partition("# syncscan:")
    return ("0  " if before.strip() else "") + mark + said if mark else ""


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
def _read(path: Path) -> str | None:
    found = path.stat()
    if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_BYTES:
        return None
    with tokenize.open(path) as file:  # in the encoding that it declares
        return file.read()


@lru_cache(maxsize=64)
def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


__all__ = ["MAX_BYTES", "Sources", "excerpts", "function_with", "text_of", "tree_of"]
