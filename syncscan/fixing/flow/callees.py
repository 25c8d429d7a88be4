"""Finds what a call runs, as far as the file and its run show it: functions of the same file, or full names."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator

from syncscan.fixing import calls
from syncscan.fixing.program_file import File
from syncscan.source.tree import Function, Scope

_RUN_BESIDE = frozenset("Thread Timer submit signal run_in_executor to_thread add_done_callback".split())
"""Calls after which a function that they are given runs on its own, beside the rest of the program."""


def callee(file: File, call: ast.Call) -> Function | None:
    """Return the function or method of this file that a call calls; of a class its `__init__`. None for others."""
    function = call.func
    if isinstance(function, ast.Name):
        return _function(file, function) or _of_instance(file, function)
    if isinstance(function, ast.Attribute):
        methods = {id(m): m for owner in owners(file, function.value) if (m := method(file, owner, function.attr))}
        return next(iter(methods.values())) if len(methods) == 1 else None
    return None


def owners(file: File, base: ast.expr) -> set[str]:
    """Return the names of the classes that an expression's values are of; of `self` the class around it too."""
    if isinstance(base, ast.Name):
        scope = file.function_of(base)
        owner = file.class_of(scope)
        first = scope.args.args[:1] if owner is not None and isinstance(scope, ast.FunctionDef) else []
        if owner is not None and first and base.id == first[0].arg:
            return {owner.name}
    return {name.rpartition(".")[2] for name in file.types(base)}


def method(file: File, owner: str, name: str) -> Function | None:
    """Return a class's method, its own or that of a base class in this file."""
    node = _class(file, owner)
    if node is None:
        return None
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == name:
            return statement
    bases = (method(file, base.id, name) for base in node.bases if isinstance(base, ast.Name) and base.id != owner)
    return next((m for m in bases if m is not None), None)


def has_parameter(function: Scope, name: str) -> bool:
    """Return whether a function has a parameter of this name, whose value its callers hold too."""
    if isinstance(function, ast.Module):
        return False
    return name in [a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]


def calls_of(file: File, function: Function) -> list[ast.Call] | None:
    """Return all calls of a function; None where it is called in other ways too, or may be from elsewhere."""
    if not file.main and _is_public(file, function):
        return None
    calls = [n for n in file.nodes if isinstance(n, ast.Call) and callee(file, n) is function]
    functions = {id(call.func) for call in calls}
    if file.class_of(function) is None:
        used = (n for n in file.names(file.scope_of(function), function.name) if isinstance(n.ctx, ast.Load))
        if any(id(n) not in functions for n in used):
            return None
    elif any(_is_taken(file, n) for n in file.attributes(function.name)):
        return None
    counted = sum(file.seen(call).count for call in calls)
    return calls if file.entered(function).count == counted else None


def _is_public(file: File, function: Function) -> bool:
    """Return whether other files can call a function: no function holds it, and its name isn't private."""
    private = function.name.startswith("_") and not function.name.endswith("__")
    return isinstance(file.scope_of(function), ast.Module) and not private


def is_value(file: File, function: Function) -> bool:
    """Return whether a function is used as a value: as the handler of a signal it may run at any time."""
    return any(True for _ in _values(file, function))


def runs_on_its_own(file: File, function: Function) -> bool:
    """Return whether a function is given to a thread or to a timer, so that it runs beside the rest of the program."""
    for value in _values(file, function):
        parent = file.parents[value]
        call = file.parents[parent] if isinstance(parent, ast.keyword) else parent
        name = getattr(call.func, "attr", getattr(call.func, "id", "")) if isinstance(call, ast.Call) else ""
        if name in _RUN_BESIDE:
            return True
    return False


def _values(file: File, function: Function) -> Iterator[ast.expr]:
    if file.class_of(function) is not None:
        yield from (n for n in file.attributes(function.name) if _is_taken(file, n))
        return
    for name in file.names(file.scope_of(function), function.name):
        parent = file.parents[name]
        called = isinstance(parent, ast.Call) and parent.func is name
        if isinstance(name.ctx, ast.Load) and not called:
            yield name


def _is_taken(file: File, attribute: ast.Attribute) -> bool:
    """Return whether a method is used as a value instead of being called."""
    parent = file.parents[attribute]
    return not (isinstance(parent, ast.Call) and parent.func is attribute) and isinstance(attribute.ctx, ast.Load)


def _function(file: File, name: ast.Name) -> Function | None:
    scope = file.home_of(name)
    bound = [n for n in _definitions(file, name.id) if file.scope_of(n) is scope]
    if len(bound) != 1 or file.stores(name):
        return None
    definition = bound[0]
    return method(file, definition.name, "__init__") if isinstance(definition, ast.ClassDef) else definition


def _of_instance(file: File, name: ast.Name) -> Function | None:
    """Return the `__call__` or `forward` that calling this name runs, if the name holds an object of this file."""
    value = file.only_value(name)
    types = {t.rpartition(".")[2] for t in file.types(value)} if value is not None else set()
    owner = types.pop() if len(types) == 1 else ""
    return method(file, owner, "__call__") or method(file, owner, "forward")


def _definitions(file: File, name: str) -> Iterator[Function | ast.ClassDef]:
    for node in file.nodes:
        named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name
        if named and not isinstance(file.parents[node], ast.ClassDef):
            yield node  # type: ignore[misc]


def _class(file: File, name: str) -> ast.ClassDef | None:
    classes = [n for n in file.nodes if isinstance(n, ast.ClassDef) and n.name == name]
    return classes[0] if len(classes) == 1 else None


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
    if callee(file, call) is not None:
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
    if full := calls.full_name(file, function):
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
    if method(file, owner.rpartition(".")[2], function.attr) is not None:
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
            if full := calls.full_name(file, base):
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
