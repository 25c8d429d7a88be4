"""Edits of a text: replaced spans and inserted lines, which together give a new text with lines of its own."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import pairwise

import msgspec

from syncscan.model.fix import SourceEdit
from syncscan.source.code_pattern import filled
from syncscan.source.text import Text
from syncscan.source.tree import lines_of

Render = Callable[[ast.AST], str]
Template = Callable[[Render], str]
"""Gives the new source of a node; it is handed what gives the new source of the node's parts."""
Line = str | Template


def template(code: str, **parts: ast.AST | str) -> Line:
    """Return the code of a template, `$x.double()`, of sources, and of nodes with their changes."""
    words = {name: part for name, part in parts.items() if isinstance(part, str)}
    nodes = {name: part for name, part in parts.items() if not isinstance(part, str)}
    if not nodes:
        return filled(code, **words)
    return lambda render: filled(code, **words, **{name: render(node) for name, node in nodes.items()})


class Edit(msgspec.Struct, frozen=True, order=True):
    """A span of the text and its replacement; an empty span marks an insertion."""

    begin: int
    end: int
    order: int
    """Among edits of the same span: what ends an inner block comes before what ends an outer one."""
    text: str


class Clash(Exception):
    """Two edits of the same place, or lines that can't be put beside a statement."""


class Draft:
    """A change under construction: new source for nodes, and lines before or after statements."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.nodes: dict[ast.AST, Line] = {}
        """New source of nodes; one that is given in words holds no changes of what is inside of its node."""
        self.beside: dict[tuple[ast.stmt, bool], list[Line]] = {}
        """Blocks of lines, each once, in front of a statement (False) or behind it (True)."""
        self.other: list[Edit] = []

    def replace(self, node: ast.AST, new: Line) -> None:
        """Give a node new source; a second one that differs is a `Clash`."""
        if self._source(self.nodes.setdefault(node, new)) != self._source(new):
            raise Clash

    def _source(self, line: Line) -> str:
        return line if isinstance(line, str) else line(self.text.code)

    def put_before(self, statement: ast.stmt, *lines: Line, behind: bool = False) -> None:
        """Put blocks of lines in front of a statement, with its indentation, each block once."""
        known = self.beside.setdefault((statement, behind), [])
        words = [self._source(line) for line in known]
        known += [line for line in lines if self._source(line) not in words]

    def put_behind(self, statement: ast.stmt, *lines: Line) -> None:
        """Put blocks of lines behind a statement, with its indentation, each block once."""
        self.put_before(statement, *lines, behind=True)

    def merge(self, other: Draft) -> None:
        """Take over another draft's changes; a `Clash` where both change a node differently, or one a part of it."""
        for outer, inner in ((self, other), (other, self)):
            words = [node for node, new in outer.nodes.items() if isinstance(new, str)]
            if any(_holds(self.text, o, n) for o in words for n in inner.nodes if n not in outer.nodes):
                raise Clash
        for node, new in other.nodes.items():
            self.replace(node, new)
        for (statement, behind), lines in other.beside.items():
            self.put_before(statement, *lines, behind=behind)
        self.other += [edit for edit in other.other if edit not in self.other]

    def copy(self) -> Draft:
        same = Draft(self.text)
        same.merge(self)
        return same

    def remove(self, statement: ast.stmt) -> None:
        """Take away a statement with its lines; it must stand alone on them, and not alone in its block."""
        begin = self.text.starts[statement.lineno - 1]
        end_line = statement.end_lineno or statement.lineno
        end = self.text.starts[end_line] if end_line < len(self.text.starts) else len(self.text.text)
        self.other.append(Edit(begin, end, 0, ""))

    def render(self, node: ast.AST, with_own: bool = True) -> str:
        """Return the new source of a node: what replaces it, or its source with its parts' changes."""
        new = self.nodes.get(node) if with_own else None
        if new is not None:
            return new if isinstance(new, str) else new(lambda part: self.render(part, part is not node))
        begin, _ = self.text.span(node)
        inside = self._outermost([n for n in self.nodes if n is not node and _holds(self.text, node, n)])
        return _applied(self.text.code(node), (_moved(edit, -begin) for edit in inside))

    def edits(self) -> list[Edit]:
        """Return all changes as spans, in their order; a `Clash` where two overlap."""
        beside = [self._put(statement, lines, behind=behind) for (statement, behind), lines in self.beside.items()]
        return checked([*self._outermost(self.nodes), *beside, *self.other])

    def _outermost(self, nodes: Collection[ast.AST]) -> list[Edit]:
        """Return the edits of nodes that no other one of them holds."""
        outer = [n for n in nodes if not any(_holds(self.text, o, n) for o in nodes if o is not n)]
        return [Edit(*self.text.span(n), 0, self.render(n)) for n in outer]

    def _put(self, statement: ast.stmt, lines: Sequence[Line], *, behind: bool) -> Edit:
        text, end_of_line = self.text, self.text.line_end
        if not text.begins_its_line(statement) or (behind and not text.ends_its_line(statement)):
            raise Clash  # beside it on its line stands what would run in another order, or under no condition any more
        number = (statement.end_lineno or statement.lineno) + 1 if behind else lines_of(statement).start
        indent = text.indent(statement)
        words = (line if isinstance(line, str) else line(self.render) for line in lines)
        rows = [row for block in words for row in block.split("\n")]
        block = "".join(f"{indent}{row}{end_of_line}" for row in rows)
        order = -len(indent) if behind else 1
        if number <= len(text.starts):
            at = text.starts[number - 1]
            return Edit(at, at, order, block)
        return Edit(len(text.text), len(text.text), order, end_of_line + block.removesuffix(end_of_line))


def checked(edits: Iterable[Edit]) -> list[Edit]:
    """Return edits in their order, each once; a `Clash` where two overlap."""
    result: list[Edit] = []
    for edit in sorted(dict.fromkeys(edits)):
        if result and edit.begin < result[-1].end:
            raise Clash
        result.append(edit)
    return result


def applied(text: str, edits: Iterable[Edit]) -> str:
    return _applied(text, checked(edits))


def _applied(text: str, edits: Iterable[Edit]) -> str:
    parts, at = [], 0
    for edit in sorted(edits):
        parts += [text[at : edit.begin], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


def _moved(edit: Edit, by: int) -> Edit:
    return Edit(edit.begin + by, edit.end + by, edit.order, edit.text)


def _holds(text: Text, outer: ast.AST, inner: ast.AST) -> bool:
    a, b = text.span(outer), text.span(inner)
    return a[0] <= b[0] and b[1] <= a[1] and a != b


Origin = tuple[int, Edit | None]
"""The line that a line of the new text was, or that it was put in front of, and the first edit that wrote in it."""


def origins(text: Text, edits: Iterable[Edit], new: str) -> list[Origin]:
    """Return where each line of the new text comes from."""
    starts, spans, shift = Text(text.path, new).starts, [], 0
    for edit in sorted(edits):
        spans.append((edit.begin + shift, edit.begin + shift + len(edit.text), edit))
        shift += len(edit.text) - (edit.end - edit.begin)
    result: list[Origin] = []
    for start, end in pairwise([*starts, len(new) + 1]):
        by = next((edit for first, last, edit in spans if first < min(last, end) and last > start), None)
        if by is not None and (first := next(first for first, _, edit in spans if edit is by)) <= start:
            line = min(text.line_of(by.begin) + new[first:start].count("\n"), text.line_of(by.end))
        else:
            shift = sum(len(edit.text) - (edit.end - edit.begin) for _, last, edit in spans if last <= start)
            line = text.line_of(min(max(start - shift, 0), len(text.text)))
        result.append((line, by))
    return result


def statement_lines(new: str) -> set[int]:
    """Return the lines of a text that a statement begins in, which a run that comes by visits."""
    nodes = ast.walk(ast.parse(new))
    return {
        n.lineno
        for n in nodes
        if isinstance(n, ast.stmt) and not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))
    }


def change(text: Text, edit: Edit) -> SourceEdit:
    """Return an edit by lines and columns."""
    begin, end = text.line_of(edit.begin), text.line_of(edit.end)
    starts = text.starts
    return SourceEdit(begin, edit.begin - starts[begin - 1] + 1, end, edit.end - starts[end - 1] + 1, edit.text)


def unified(name: str, before: str, after: str) -> str:
    """Return the difference of two texts as `git apply` takes it."""
    path = name.lstrip("/")
    lines = difflib.unified_diff(_git_lines(before), _git_lines(after), f"a/{path}", f"b/{path}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _git_lines(text: str) -> list[str]:
    """Return lines with their ends as git counts them: a form feed or a lone carriage return ends none."""
    lines = [f"{line}\n" for line in text.split("\n")]
    return [*lines[:-1], *([last] if (last := lines[-1].removesuffix("\n")) else [])]
