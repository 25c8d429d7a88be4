"""Names, calls and literals as they are written."""

from __future__ import annotations

import ast
from collections.abc import Mapping

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
