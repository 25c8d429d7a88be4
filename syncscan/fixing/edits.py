"""Edits of a text: replaced spans and inserted lines, which together give a new text with lines of its own."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterable, Sequence

import msgspec

from syncscan.fixing.source_text import Text
from syncscan.model.fix import SourceEdit
from syncscan.source.code_pattern import filled

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
        self.nodes: dict[ast.AST, Template] = {}
        self.words: set[ast.AST] = set()
        """Nodes whose new source is given in words, so that it holds no changes of what is inside of them."""
        self.before: dict[ast.stmt, list[Line]] = {}
        self.behind: dict[ast.stmt, list[Line]] = {}
        self.other: list[Edit] = []

    def replace(self, node: ast.AST, template: Template | str) -> None:
        """Give a node new source; a second one that differs is a `Clash`."""
        given_in_words = isinstance(template, str)
        if isinstance(template, str):
            words = template
            template = lambda render: words  # noqa: E731
        if node in self.nodes and self._source(self.nodes[node]) != self._source(template):
            raise Clash
        self.nodes[node] = template
        if given_in_words:
            self.words.add(node)

    def _source(self, template: Line) -> str:
        return template if isinstance(template, str) else template(self.text.code)

    def put_before(self, statement: ast.stmt, *lines: Line) -> None:
        """Put blocks of lines in front of a statement, with its indentation, each block once."""
        self._put_in(self.before.setdefault(statement, []), lines)

    def put_behind(self, statement: ast.stmt, *lines: Line) -> None:
        """Put blocks of lines behind a statement, with its indentation, each block once."""
        self._put_in(self.behind.setdefault(statement, []), lines)

    def _put_in(self, known: list[Line], lines: Iterable[Line]) -> None:
        words = [self._source(line) for line in known]
        known += [line for line in lines if self._source(line) not in words]

    def merge(self, other: Draft) -> None:
        """Take over another draft's changes; a `Clash` where both change a node differently, or one a part of it."""
        for outer, inner in ((self, other), (other, self)):
            if any(_holds(self.text, o, n) for o in outer.words for n in inner.nodes if n not in outer.nodes):
                raise Clash
        for node, template in other.nodes.items():
            self.replace(node, template)
        self.words |= other.words
        for statement, lines in other.before.items():
            self.put_before(statement, *lines)
        for statement, lines in other.behind.items():
            self.put_behind(statement, *lines)
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
        if with_own and node in self.nodes:
            return self.nodes[node](lambda part: self.render(part, part is not node))
        begin, _ = self.text.span(node)
        return _applied(self.text.code(node), (_moved(edit, -begin) for edit in self._inside(node)))

    def edits(self) -> list[Edit]:
        """Return all changes as spans, in their order; a `Clash` where two overlap."""
        nodes = [n for n in self.nodes if not any(_holds(self.text, o, n) for o in self.nodes if o is not n)]
        spans = [Edit(*self.text.span(node), 0, self.render(node)) for node in nodes]
        spans += [self._put(statement, lines, behind=False) for statement, lines in self.before.items()]
        spans += [self._put(statement, lines, behind=True) for statement, lines in self.behind.items()]
        return checked([*spans, *self.other])

    def _inside(self, node: ast.AST) -> list[Edit]:
        inner = [n for n in self.nodes if n is not node and _holds(self.text, node, n)]
        outermost = [n for n in inner if not any(_holds(self.text, o, n) for o in inner if o is not n)]
        return [Edit(*self.text.span(n), 0, self.render(n)) for n in outermost]

    def _put(self, statement: ast.stmt, lines: Sequence[Line], *, behind: bool) -> Edit:
        text, end_of_line = self.text, self.text.line_end
        if not text.begins_its_line(statement) or (behind and not text.ends_its_line(statement)):
            raise Clash  # beside it on its line stands what would run in another order, or under no condition any more
        number = (statement.end_lineno or statement.lineno) + 1 if behind else first_line(statement)
        indent = text.indent(statement)
        words = [line if isinstance(line, str) else line(self.render) for line in lines]
        rows = [row for block in words for row in block.split("\n")]
        block = "".join(f"{indent}{row}{end_of_line}" for row in rows)
        order = -len(indent) if behind else 1
        if number <= len(text.starts):
            at = text.starts[number - 1]
            return Edit(at, at, order, block)
        return Edit(len(text.text), len(text.text), order, end_of_line + block.removesuffix(end_of_line))


def first_line(statement: ast.stmt) -> int:
    """Return the first line of a statement, its decorators too."""
    decorators = getattr(statement, "decorator_list", [])
    first: int = min([statement.lineno, *(d.lineno for d in decorators)])
    return first


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


def unified(name: str, before: str, after: str) -> str:
    """Return the difference of two texts as `git apply` takes it."""
    path = name.lstrip("/")
    lines = difflib.unified_diff(_git_lines(before), _git_lines(after), f"a/{path}", f"b/{path}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _git_lines(text: str) -> list[str]:
    """Return lines with their ends as git counts them: a form feed or a lone carriage return ends none."""
    lines = [f"{line}\n" for line in text.split("\n")]
    return [*lines[:-1], *([last] if (last := lines[-1].removesuffix("\n")) else [])]
