"""Calls with one argument more."""

from __future__ import annotations

import ast
import re

from syncscan.fixing.edits import Render, Template
from syncscan.fixing.source_text import Text

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
