"""Finds the calls that make a program's objects: loaders, metrics, trainers and their arguments."""

from __future__ import annotations

import ast

from syncscan.fixing.program_file import File
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
