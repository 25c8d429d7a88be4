"""Tells what a call runs: a function of the same file, or by its full name one of another file: `torch.relu`."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator

from syncscan.fixing import argument_calls as calls
from syncscan.fixing.program_file import File
from syncscan.source.names import called, parameters
from syncscan.source.tree import Function, Scope

_RUN_BESIDE = frozenset("Thread Timer submit signal run_in_executor to_thread add_done_callback".split())
"""Calls after which a function that they are given runs on its own, beside the rest of the program."""
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
    classes = file.classes(owner)
    if len(classes) != 1:
        return None
    node = classes[0]
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == name:
            return statement
    bases = (method(file, base.id, name) for base in node.bases if isinstance(base, ast.Name) and base.id != owner)
    return next((m for m in bases if m is not None), None)


def has_parameter(function: Scope, name: str) -> bool:
    """Return whether a function has a parameter of this name, whose value its callers hold too."""
    return not isinstance(function, ast.Module) and name in [a.arg for a in parameters(function)]


def calls_of(file: File, function: Function) -> list[ast.Call] | None:
    """Return all calls of a function; None where it is called in other ways too, or may be from elsewhere."""
    if not file.main and _is_public(file, function):
        return None
    calls = [n for n in file.nodes if isinstance(n, ast.Call) and callee(file, n) is function]
    counted = sum(file.seen(call).count for call in calls)
    functions = {call.func for call in calls}
    elsewhere = file.class_of(function) is None and any(n not in functions for n in _loads(file, function))
    return None if elsewhere or is_value(file, function) or file.entered(function).count != counted else calls


def _is_public(file: File, function: Function) -> bool:
    """Return whether other files can call a function: no function holds it, and its name isn't private."""
    private = function.name.startswith("_") and not function.name.endswith("__")
    return isinstance(file.scope_of(function), ast.Module) and not private


def _loads(file: File, function: Function) -> list[ast.Name] | list[ast.Attribute]:
    """Return the uses of a function by its name; of a method all of its name."""
    if file.class_of(function) is not None:
        return [n for n in file.attributes(function.name) if isinstance(n.ctx, ast.Load)]
    return [n for n in file.names(file.scope_of(function), function.name) if isinstance(n.ctx, ast.Load)]


def is_value(file: File, function: Function) -> bool:
    """Return whether a function is used as a value: as the handler of a signal it may run at any time."""
    return not all(map(file.is_called, _loads(file, function)))


def runs_on_its_own(file: File, function: Function) -> bool:
    """Return whether a function is given to a thread or to a timer, so that it runs beside the rest of the program."""
    around = [file.parents[n] for n in _loads(file, function) if not file.is_called(n)]
    calls = (file.parents[n] if isinstance(n, ast.keyword) else n for n in around)
    return any(isinstance(call, ast.Call) and called(call) in _RUN_BESIDE for call in calls)


def _function(file: File, name: ast.Name) -> Function | None:
    match file.definitions(name):
        case [ast.ClassDef(name=owner)]:
            return method(file, owner, "__init__")
        case [ast.FunctionDef() | ast.AsyncFunctionDef() as function]:
            return function
    return None


def _of_instance(file: File, name: ast.Name) -> Function | None:
    """Return the `__call__` or `forward` that calling this name runs, if the name holds an object of this file."""
    value = file.only_value(name)
    types = {t.rpartition(".")[2] for t in file.types(value)} if value is not None else set()
    owner = types.pop() if len(types) == 1 else ""
    return method(file, owner, "__call__") or method(file, owner, "forward")


# by full names


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


def _of_value(file: File, function: ast.expr) -> frozenset[str]:
    if isinstance(function, ast.Lambda):
        return frozenset({OWN})
    if isinstance(function, ast.Name):
        if file.definitions(function) or isinstance(file.only_value(function), ast.Lambda):
            return frozenset({OWN})
        if hasattr(builtins, function.id) and file.is_free(function):
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
    if file.classes(kind):
        return OWN
    return "" if kind.partition(".")[0] in sys.stdlib_module_names or "." not in kind else f"{kind}.__call__"


def _of_method(file: File, owner: str, function: ast.Attribute) -> frozenset[str]:
    if owner == "module" or ("." not in owner and owner not in _VALUES):
        return frozenset()
    if not file.classes(owner):
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
    for node in file.classes(owner):
        for base in node.bases:
            if full := calls.full_name(file, base):
                yield full
            elif isinstance(base, ast.Name) and base.id != node.name:
                yield from _library_bases(file, base.id)
