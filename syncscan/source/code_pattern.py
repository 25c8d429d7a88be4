"""Names, calls and literals as they are written, and patterns and templates of code.

In a pattern `$x` stands for anything, and `...` for more arguments: `matched("$x.item()", node)` finds what x is, and
`filled("$x.double()", x=source)` writes other code of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

_AS_WRITTEN: Mapping[str, str] = {}


def dotted(node: ast.AST, meanings: Mapping[str, str] = _AS_WRITTEN) -> str:
    """Return the dotted name that an expression is, its first part by what it means; empty for what is no name."""
    if isinstance(node, ast.Name):
        return meanings.get(node.id, node.id)
    inner = dotted(node.value, meanings) if isinstance(node, ast.Attribute) else ""
    return f"{inner}.{node.attr}" if inner else ""  # type: ignore[attr-defined]


def key(node: ast.AST) -> str:
    """Return the spelling of a name, an attribute or a constant item of one, as in environments; empty for others."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=owner, attr=name) if inner := key(owner):
            return f"{inner}.{name}"
        case ast.Subscript(value=owner, slice=ast.Constant(value=item)) if inner := key(owner):
            return f"{inner}[{item!r}]"
    return ""


def last_name(node: ast.AST) -> str:
    """Return the last part of a name or attribute, through subscripts: `agents[0].optimizer` → `optimizer`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def called(node: ast.AST) -> str:
    """Return the last name of a called function, method or decorator; empty for what has none."""
    function = node.func if isinstance(node, ast.Call) else node
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def argument(call: ast.Call, name: str, at: int = -1) -> ast.expr | None:
    """Return an argument of a call by name or position; None if it isn't given."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    return call.args[at] if 0 <= at < len(call.args) and not isinstance(call.args[at], ast.Starred) else None


def splats(call: ast.Call) -> bool:
    """Return whether a call forwards arguments that the source doesn't name: `f(*args)`, `f(**options)`."""
    return any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[ast.arg]:
    """Return the parameters of a function, without `*args` and `**options`."""
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def constant(node: ast.AST | None) -> object:
    """Return a literal's value; None for anything else."""
    return node.value if isinstance(node, ast.Constant) else None


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


_VARIABLE = re.compile(r"(?P<before>(?<=[-+*/<>] )|(?<=[~-]))?\$(?P<name>\w+)(?P<after>[.\[(]| (?=[-+*/<>]|==|!=))?")
_BINDS = ast.Name | ast.Attribute | ast.Subscript | ast.Call | ast.Constant
"""Expressions that need no parentheses beside an operator."""


def filled(template: str, **sources: str) -> str:
    """Return the code of a template, with the variables' sources in parentheses where they need them."""
    return _VARIABLE.sub(lambda variable: _as_part(variable, sources[variable["name"]]), template)


def _as_part(variable: re.Match[str], source: str) -> str:
    after = variable["after"] or ""
    if after.strip():
        return primary(source) + after
    beside = variable["before"] is not None or after
    binds = not beside or isinstance(ast.parse(source, mode="eval").body, _BINDS)
    return (source if binds else f"({source})") + after


def primary(source: str) -> str:
    """Return the source of an expression so that a method can be called on it: in parentheses, where it needs them."""
    try:
        expression, part = ast.parse(source, mode="eval").body, ast.parse(f"{source}.x", mode="eval").body
    except SyntaxError:  # several lines, or a number
        return f"({source})"
    binds = isinstance(part, ast.Attribute) and ast.dump(part.value) == ast.dump(expression)
    return source if binds else f"({source})"
