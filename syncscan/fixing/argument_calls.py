"""Calls that make a program's objects, and calls with one argument more."""

from __future__ import annotations

import ast
import re

from syncscan.fixing.edits import Render, Template
from syncscan.fixing.program_file import File
from syncscan.fixing.source_text import Text
from syncscan.source.names import dotted


def made(file: File, used: ast.expr) -> ast.expr | None:
    """Return what the only assignment of a name or attribute gives it."""
    if isinstance(used, ast.Name):
        return file.only_value(used)
    attributes = file.attributes(used.attr) if isinstance(used, ast.Attribute) else ()
    stores = [n for n in attributes if not isinstance(n.ctx, ast.Load)]
    return file.value_given(stores[0]) if len(stores) == 1 else None


def only(file: File, *types: str) -> ast.Call | None:
    """Return the file's only call that makes an object of a type that begins so, where it ran once."""
    calls = [n for n in file.nodes if isinstance(n, ast.Call) and any(t.startswith(types) for t in file.types(n))]
    return calls[0] if len(calls) == 1 and file.seen(calls[0]).count == 1 else None


def takes(call: ast.Call, *names: str) -> bool:
    """Return whether a call can be given arguments of these names: it has none of them, and no `*` or `**`."""
    given = {keyword.arg for keyword in call.keywords}
    return not any(isinstance(a, ast.Starred) for a in call.args) and not given & {None, *names}


def full_name(file: File, function: ast.expr) -> str:
    """Return a function's name with its module, by the file's imports; empty for what isn't imported."""
    first = dotted(function).partition(".")[0]
    return dotted(function, file.imported) if file.imported.get(first) else ""


FARTHEST = 50
"""Column up to which a new line is aligned with the first argument."""


def with_argument(text: Text, call: ast.Call, words: str, *, alone: bool = False) -> Template:
    """Return a call's source with one argument more, and its lines and comments as they are.

    The argument gets a line of its own where the last one has one, or where the line would be longer than the file's.
    With `alone`, what stands beside the call on its lines goes elsewhere.
    """

    def source(render: Render) -> str:
        code = render(call)
        spans = _arguments(code)
        if not spans:
            return f"{code[:-1].rstrip()}{words})"
        last = spans[-1][1]
        while code[last:].lstrip().startswith(")") and code.index(")", last) < len(code) - 1:
            last = code.index(")", last) + 1  # of parentheses around the last argument
        before, after = ("", "") if alone else _beside(text, call)
        at = [len(before) + position for position in (spans[0][0], spans[-1][0], last)]
        indent = _indent(Text("", before + code + after), *at, width=text.width - len(words))
        return f"{code[:last]},{' ' if indent is None else text.line_end + indent}{words}{code[last:]}"

    return source


def _arguments(code: str) -> list[tuple[int, int]]:
    """Return the spans of a call's arguments in its source, without parentheses around them."""
    call, text = ast.parse(code, mode="eval").body, Text("", code)
    assert isinstance(call, ast.Call)
    return sorted(text.span(part) for part in (*call.args, *call.keywords))


def _beside(text: Text, call: ast.Call) -> tuple[str, str]:
    """Return what stands in front of a call on its first line, and behind it on its last."""
    begin, end = text.span(call)
    first, last = text.line_of(begin) - 1, text.line_of(end) - 1
    return text.text[text.starts[first] : begin], text.lines[last][end - text.starts[last] :]


def _indent(lines: Text, first: int, begin: int, end: int, *, width: int) -> str | None:
    """Return what stands in front of a new argument on a line of its own; None where it stays on the last one's line.

    `width` is how long that line may be without it.
    """
    row = lines.line_of(end) - 1
    if "#" in lines.lines[row][end - lines.starts[row] :]:
        return None
    in_front = [lines.text[lines.starts[lines.line_of(at) - 1] : at] for at in (first, begin)]
    if lines.line_of(begin) > 1 and not in_front[1].strip():
        return in_front[1]
    is_full = len(lines.lines[row]) + len(", ") > width
    return re.sub(r"\S", " ", in_front[0]) if is_full and len(in_front[0]) <= FARTHEST else None
