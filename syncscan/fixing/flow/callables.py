"""Names what a call runs, as far as the file and its run show it: `torch.relu`, `torch.Tensor.sum`, `builtins.len`."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator

from syncscan.fixing import makers
from syncscan.fixing.flow import callees
from syncscan.fixing.program_file import File
from syncscan.source.tree import Function

OWN = "this file"
"""Name for the functions, methods and classes of the same file, which can be followed."""
_FUNCTIONS = frozenset({"function", "builtin_function_or_method", "method", "type"})
"""Types of what the recorder notes with its own name among the elements."""
_VALUES = frozenset("NoneType bool bytes dict float frozenset int list range set str tuple".split())
_LIBRARIES = sys.stdlib_module_names | frozenset(
    "torch torchvision torchaudio numpy scipy pandas sklearn tqdm PIL matplotlib cv2 einops gym gymnasium "
    "tensorboard tensorboardX torchmetrics".split()
)
"""Packages whose functions know nothing of a program's objects but what they are given."""


def names(file: File, call: ast.Call) -> frozenset[str]:
    """Return the full names of what a call may run; empty where that may be anything.

    A method is named with its object's class, and a call of an object as its class's `__call__`.
    """
    function = call.func
    if callees.callee(file, call) is not None:
        return frozenset({OWN})
    of_value = _of_value(file, function)
    if of_value or not isinstance(function, ast.Attribute):
        return of_value
    owners = file.types(function.value)
    methods = [_of_method(file, owner, function) for owner in owners]
    return frozenset().union(*methods) if methods and all(methods) else frozenset()


def is_of_library(name: str) -> bool:
    """Return whether a name is a library's or Python's own, and no other file's of the program."""
    package = name.partition(".")[0]
    return package in _LIBRARIES or package == "builtins" or package in _VALUES - {"NoneType"}


def is_free(file: File, name: ast.Name) -> bool:
    """Return whether nothing in the file binds a name, so that it is Python's own."""
    return not file.stores(name) and not any(name.id in _bound_by(node) for node in file.nodes)


def _bound_by(node: ast.AST) -> tuple[str | None, ...]:
    if isinstance(node, ast.alias):
        return ((node.asname or node.name).partition(".")[0],)
    return (getattr(node, "arg", None), getattr(node, "name", None))


def _of_value(file: File, function: ast.expr) -> frozenset[str]:
    if isinstance(function, ast.Lambda):
        return frozenset({OWN})
    if isinstance(function, ast.Name):
        if _is_defined(file, function):
            return frozenset({OWN})
        if hasattr(builtins, function.id) and is_free(file, function):
            return frozenset({f"builtins.{function.id}"})
    if full := makers.full_name(file, function):
        stored = isinstance(function, ast.Name) and file.stores(function)
        return frozenset() if stored else frozenset({full})
    return _of_observed(file, function)


def _of_observed(file: File, function: ast.expr) -> frozenset[str]:
    seen = file.seen(function)
    types = set(seen.types)
    if not types:
        return frozenset()
    functions = {_of_object(file, kind) for kind in types - _FUNCTIONS}
    if types & _FUNCTIONS:
        functions |= set(seen.elements) or {""}
    return frozenset(functions) if "" not in functions else frozenset()


def _of_object(file: File, kind: str) -> str:
    """Return what calling an object runs; empty for Python's own kinds, which call others: `functools.partial`."""
    if _is_own_class(file, kind):
        return OWN
    return "" if kind.partition(".")[0] in sys.stdlib_module_names or "." not in kind else f"{kind}.__call__"


def _of_method(file: File, owner: str, function: ast.Attribute) -> frozenset[str]:
    if owner == "module" or ("." not in owner and owner not in _VALUES):
        return frozenset()
    if not _is_own_class(file, owner):
        return frozenset({f"{owner}.{function.attr}"})
    if callees.method(file, owner.rpartition(".")[2], function.attr) is not None:
        return frozenset({OWN})
    stores = [n for n in file.attributes(function.attr) if not isinstance(n.ctx, ast.Load)]
    if stores:
        values = [file.value_given(store) for store in stores]
        given = [_of_value(file, value) if value is not None else frozenset() for value in values]
        return frozenset().union(*given) if all(given) else frozenset()
    return frozenset(f"{base}.{function.attr}" for base in _library_bases(file, owner))


def _library_bases(file: File, owner: str) -> Iterator[str]:
    """Yield the classes of other files that a class of this one is derived from."""
    for node in _classes(file, owner):
        for base in node.bases:
            if full := makers.full_name(file, base):
                yield full
            elif isinstance(base, ast.Name) and base.id != node.name:
                yield from _library_bases(file, base.id)


def _is_own_class(file: File, kind: str) -> bool:
    return any(True for _ in _classes(file, kind))


def _classes(file: File, kind: str) -> Iterator[ast.ClassDef]:
    name = kind.rpartition(".")[2]
    return (n for n in file.nodes if isinstance(n, ast.ClassDef) and n.name == name)


def _is_defined(file: File, name: ast.Name) -> bool:
    """Return whether a name is a function, lambda or class of the file, and never anything else."""
    home = file.home_of(name)
    if isinstance(file.only_value(name), ast.Lambda):
        return True
    defined = (n for n in file.nodes if isinstance(n, Function | ast.ClassDef) and n.name == name.id)
    return not file.stores(name) and any(file.scope_of(n) is home and file.class_of(n) is None for n in defined)
