"""Name what the program called where it waited: `item`, `nonzero`, `if`, `[]`."""

from __future__ import annotations

import ast
import contextlib
import dis
import itertools
import linecache
from types import CodeType

_OPERATIONS = {
    "BINARY_SUBSCR": "[]",
    "STORE_SUBSCR": "[]=",
    "CONTAINS_OP": "in",
    "FORMAT_VALUE": "format",
    "FORMAT_SIMPLE": "format",
    "TO_BOOL": "if",
    "UNARY_NOT": "if",
}
"""Names of instructions that wait without a call. Python 3.14's subscript is a `BINARY_OP`."""


def called(code: CodeType, instruction: int) -> str:
    """Return the last name of what an instruction calls, or a word for what it does; "" where neither is known."""
    operation = _operation(code, instruction)
    if operation in _OPERATIONS:
        return _OPERATIONS[operation]
    if "JUMP" in operation and "IF" in operation:
        return "if"
    expression = expression_at(code, instruction)
    return _name(expression) if expression is not None else ""


def expression_at(code: CodeType, instruction: int) -> ast.expr | None:
    """Return the expression that an instruction evaluates; None where the source doesn't show it."""
    with contextlib.suppress(SyntaxError, ValueError, IndexError):
        return ast.parse(_segment(code, instruction).strip(), mode="eval").body
    return None


def _operation(code: CodeType, instruction: int) -> str:
    return dis.opname[code.co_code[instruction]] if 0 <= instruction < len(code.co_code) else ""


def _segment(code: CodeType, instruction: int) -> str:
    """Return the source of an instruction's expression; if Python only stores lines, the line if it has one call."""
    positions = getattr(code, "co_positions", None)
    if positions is None:
        line = next((line for begin, end, line in code.co_lines() if begin <= instruction < end), None)
        text = linecache.getline(code.co_filename, line or 0).strip().removeprefix("return ").rpartition(" = ")[2]
        return text if text.count("(") == 1 else ""
    row = next(itertools.islice(positions(), max(0, instruction) // 2, None), None)
    if row is None:
        return ""
    line, end, column, stop = row
    lines = [linecache.getline(code.co_filename, number).encode() for number in range(line, end + 1)]
    lines[-1] = lines[-1][:stop]
    lines[0] = lines[0][column:]
    return b"".join(lines).decode(errors="replace")


def _name(expression: ast.expr) -> str:
    if isinstance(expression, ast.Subscript):
        return "[]"
    if not isinstance(expression, ast.Call):
        return ""
    function = expression.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
