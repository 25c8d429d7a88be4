"""Matches a node of a syntax tree with a pattern: code in which `$x` stands for anything, `...` for more arguments."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

from syncscan.source.names import dotted

_ANY = "any_of_"
"""`$` as Python can parse it in a pattern."""
_PLACES = frozenset("ctx kind type_comment type_params".split())
"""Fields in which the same code may differ."""
_TORCH = {"F": "torch", "th": "torch"}
"""Other usual names of torch and of its functional module."""


def usual_name(node: ast.expr) -> str:
    """Return the dotted name of an expression as it is written, with torch by one name; empty for what is no name."""
    return dotted(node, _TORCH)


def matched(
    pattern: str, node: ast.AST | None, name_of: Callable[[ast.expr], str] = usual_name
) -> SimpleNamespace | None:
    """Return what the variables of a pattern stand for, as attributes; None where the code is another.

    `$x.item() | float($x)` are two patterns, of which the first that fits counts. A variable stands for an expression
    or for a name after a dot, and wherever it stands for the same code; not for `*x`.

    Names are compared as `name_of` gives them.
    """
    for tree in _trees(pattern):
        if isinstance(tree, ast.Call) and not isinstance(node, ast.Call):
            continue
        parts: dict[str, Any] = {}
        if _Match(parts, name_of).fits(tree, node):
            return SimpleNamespace(**parts)
    return None


@cache
def _trees(pattern: str) -> Sequence[ast.AST]:
    statements = [ast.parse(one.replace("$", _ANY)).body[0] for one in pattern.split(" | ")]
    return [one.value if isinstance(one, ast.Expr) else one for one in statements]


class _Match:
    def __init__(self, parts: dict[str, Any], name_of: Callable[[ast.expr], str]) -> None:
        self._parts, self._name_of = parts, name_of

    def fits(self, pattern: Any, code: Any) -> bool:
        word = pattern.id if isinstance(pattern, ast.Name) else pattern
        if isinstance(word, str) and word.startswith(_ANY):
            return self._is_same(word.removeprefix(_ANY), code)
        if isinstance(pattern, list):
            return isinstance(code, list) and len(pattern) == len(code) and all(map(self.fits, pattern, code))
        if isinstance(pattern, ast.Name | ast.Attribute) and (name := usual_name(pattern)) and _ANY not in name:
            return isinstance(code, ast.Name | ast.Attribute) and self._name_of(code) == name
        if type(pattern) is not type(code):
            return False
        if not isinstance(pattern, ast.AST):
            return bool(pattern == code)
        if isinstance(pattern, ast.Call) and pattern.args and _is_dots(pattern.args[-1]):
            return self.fits(pattern.func, code.func) and self._begins(pattern, code)
        return all(
            self.fits(part, getattr(code, field)) for field, part in ast.iter_fields(pattern) if field not in _PLACES
        )

    def _is_same(self, variable: str, code: Any) -> bool:
        first = self._parts.setdefault(variable, code)
        if isinstance(code, ast.expr):
            same = first is code or (isinstance(first, ast.expr) and ast.unparse(first) == ast.unparse(code))
            return same and not isinstance(code, ast.Starred)
        return isinstance(code, str) and bool(first == code)

    def _begins(self, pattern: ast.Call, call: ast.Call) -> bool:
        """Return whether a call has the arguments of a pattern, and perhaps more."""
        first = pattern.args[:-1]
        named = {keyword.arg: keyword.value for keyword in call.keywords}
        return self.fits(first, call.args[: len(first)]) and all(
            keyword.arg in named and self.fits(keyword.value, named[keyword.arg]) for keyword in pattern.keywords
        )


def _is_dots(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...
