"""Maps lines of a patched text to lines of the original."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from syncscan.fixing.edits import Edit
from syncscan.fixing.source_text import Text
from syncscan.model.fix import SourceEdit


def moved_lines(text: Text, edits: Sequence[Edit], new: str) -> list[int]:
    """Return for each line of the new text the line that it was, or the one that it was put in front of."""
    result: list[int] = []
    fresh = Text(text.path, new)
    shift, at = 0, 0
    ordered = sorted(edits)
    for start in fresh.starts:
        while at < len(ordered) and ordered[at].begin + shift + len(ordered[at].text) <= start:
            shift += len(ordered[at].text) - (ordered[at].end - ordered[at].begin)
            at += 1
        if at < len(ordered) and start >= ordered[at].begin + shift:
            edit = ordered[at]
            inside = new[edit.begin + shift : start].count("\n")
            first, last = text.line_of(edit.begin), text.line_of(edit.end)
            result.append(min(first + inside, last))
        else:
            result.append(text.line_of(min(max(start - shift, 0), len(text.text))))
    return result


def written_lines(text: Text, edits: Iterable[Edit], new: str) -> dict[int, Edit]:
    """Return the lines of the new text that edits have written to, with the edit."""
    fresh = Text(text.path, new)
    lines: dict[int, Edit] = {}
    shift = 0
    for edit in sorted(edits):
        begin = edit.begin + shift
        end = begin + len(edit.text)
        if edit.text:
            for line in range(fresh.line_of(begin), fresh.line_of(max(begin, end - 1)) + 1):
                lines.setdefault(line, edit)
        shift += len(edit.text) - (edit.end - edit.begin)
    return lines


def statement_lines(new: str) -> set[int]:
    """Return the lines of a text that a statement begins in, which a run that comes by visits."""
    tree = ast.parse(new)
    docstrings = {
        id(node.body[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and ast.get_docstring(node, clean=False) is not None
    }
    return {n.lineno for n in ast.walk(tree) if isinstance(n, ast.stmt) and id(n) not in docstrings}


def change(text: Text, edit: Edit) -> SourceEdit:
    """Return an edit by lines and columns."""
    begin, end = text.line_of(edit.begin), text.line_of(edit.end)
    starts = text.starts
    return SourceEdit(begin, edit.begin - starts[begin - 1] + 1, end, edit.end - starts[end - 1] + 1, edit.text)


def span(node: ast.AST) -> tuple[int, int]:
    """Return the first and the last line of a node."""
    line = int(getattr(node, "lineno", 0))
    return line, int(getattr(node, "end_lineno", None) or line)
