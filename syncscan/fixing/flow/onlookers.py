"""Finds who else may look at a name or attribute while it holds a deferred number, before that is read.

Those are the handlers around the loop and around the calls of its function, which run when the loop is interrupted, and
for attributes any code that isn't known to know nothing of the object: other files, callbacks, what copies or saves it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from syncscan.fixing.flow import callables, callees
from syncscan.fixing.flow.taint import Attribute, Cell, ContainerShape, Origin, Stuck
from syncscan.fixing.program_file import File, Function

if TYPE_CHECKING:
    from syncscan.fixing.flow.number_walk import NumberWalk

_SHALLOW = frozenset(f"builtins.{name}" for name in ("callable", "hasattr", "id", "isinstance", "len", "super", "type"))
"""Functions that don't look at an object's attributes."""
_SPEAK = frozenset(f"builtins.{name}" for name in ("format", "print", "repr", "str"))
"""Functions that run `__str__` or `__repr__`, which the file shows."""
_CONTEXTS = ("torch.", "_io.", "contextlib.nullcontext", "tqdm.", "warnings.catch_warnings", "tempfile.", "threading.")
"""How the types of contexts begin that let exceptions pass, and look at no object of the program."""
_CONTAINERS = ("list.", "dict.", "set.", "collections.deque.")
"""Types whose methods don't look into what they hold."""
_HANDLED = "is used by an exception handler around the loop"
_INTERRUPTED = "may be used after an exception that is handled around the loop"


def check(walk: NumberWalk, origin: Origin) -> None:
    """Make sure that nobody sees the cells of an origin before they are read."""
    home = origin.home
    assert home is not None
    if any(isinstance(n, ast.Yield | ast.YieldFrom | ast.Await) for n in ast.walk(home)):
        raise Stuck(home, "is stored in a loop that yields", origin)
    held = {cell: taint for (cell, of), taint in walk.cells.items() if of is origin}
    for cell, taint in held.items():
        if isinstance(cell, Attribute):
            _check_object(walk, cell, origin)
        outlives = _outlives(walk.file, cell, home, taint.shape is not ContainerShape.NUMBER)
        if (handler := _interruption(walk, cell, home, outlives, set())) is not None:
            raise Stuck(handler, _HANDLED if _uses_in_handlers(walk, cell, handler) else _INTERRUPTED, origin)


def _outlives(file: File, cell: Cell, home: ast.AST, is_container: bool) -> bool:
    """Return whether a cell is still there if an exception ends the function of its loop."""
    function = file.function_of(home)
    if isinstance(cell, Attribute):
        return True
    if cell.scope is not function:
        return True
    return is_container and callees.has_parameter(function, cell.name)


# handlers and contexts


def _interruption(walk: NumberWalk, cell: Cell, node: ast.AST, outlives: bool, done: set[Function]) -> ast.AST | None:
    """Return the handler or context that an exception in a node may lead to, if a cell may be used from there on."""
    inner = node
    function = walk.file.function_of(node)
    for outer in walk.file.ancestors(node):
        if outer is function:
            break
        if isinstance(outer, ast.Try) and inner in (*outer.body, *outer.orelse) and _shows(walk, cell, outer, outlives):
            return outer
        if isinstance(outer, ast.With | ast.AsyncWith) and inner in outer.body:
            pass_all = all(_lets_pass(walk.file, item.context_expr) for item in outer.items)
            if not pass_all and (outlives or _is_used_outside(walk, cell, outer)):
                return outer
        inner = outer
    if not outlives or isinstance(function, ast.Module) or function in done:
        return None
    calls = _calls(walk.file, function)
    handlers = (_interruption(walk, cell, call, True, done | {function}) for call in calls)
    return next((handler for handler in handlers if handler is not None), None)


def _shows(walk: NumberWalk, cell: Cell, node: ast.Try, outlives: bool) -> bool:
    """Return whether the handlers of a `try`, or what runs after them, may use a cell."""
    handlers: list[ast.ExceptHandler | ast.stmt] = [*node.handlers, *node.finalbody]
    looks = outlives and any(_may_look(walk.file, handler) for handler in handlers)
    if looks or _uses_in_handlers(walk, cell, node):
        return True
    ends = all(isinstance(handler.body[-1], ast.Raise) for handler in node.handlers)
    return not ends and (outlives or _is_used_outside(walk, cell, node))


def _uses_in_handlers(walk: NumberWalk, cell: Cell, node: ast.AST) -> bool:
    handlers = [*node.handlers, *node.finalbody] if isinstance(node, ast.Try) else []
    return any(walk.file.within(use, handler) for use in walk.uses(cell) for handler in handlers)


def _may_look(file: File, handler: ast.ExceptHandler | ast.stmt) -> bool:
    """Return whether a handler does more than to raise, or to call a library's function with constants."""
    body = handler.body if isinstance(handler, ast.ExceptHandler) else [handler]
    return not all(isinstance(one, ast.Raise | ast.Pass) or _only_says(file, one) for one in body)


def _only_says(file: File, statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not all(isinstance(a, ast.Constant) for a in call.args):
        return False
    names = callables.names(file, call)
    return bool(names) and all(callables.is_of_library(name) for name in names)


def _is_used_outside(walk: NumberWalk, cell: Cell, node: ast.Try | ast.With | ast.AsyncWith) -> bool:
    """Return whether a cell is used outside of a statement's body, which an exception leaves early."""
    return any(not any(walk.file.within(use, s) for s in node.body) for use in walk.uses(cell))


def _lets_pass(file: File, context: ast.expr) -> bool:
    """Return whether a context neither handles exceptions nor looks at the program's objects."""
    if isinstance(context, ast.Call) and isinstance(context.func, ast.Name | ast.Attribute):
        names = callables.names(file, context)
        if names and all(name.startswith(_CONTEXTS) or name == "builtins.open" for name in names):
            return True
    types = file.types(context)
    return bool(types) and all(kind.startswith(_CONTEXTS) for kind in types)


def _calls(file: File, function: Function) -> Iterator[ast.Call]:
    """Yield the calls of a function, and of methods of its name whose object is unknown."""
    for node in file.nodes:
        if isinstance(node, ast.Call):
            named = isinstance(node.func, ast.Attribute) and node.func.attr == function.name
            if callees.callee(file, node) is function or (named and not callables.names(file, node)):
                yield node


# objects


def _check_object(walk: NumberWalk, cell: Attribute, origin: Origin) -> None:
    """Refuse an attribute that something outside of the file may read meanwhile."""
    file = walk.file
    if not file.main:
        raise Stuck(origin.node, f"is stored in .{cell.name}, which other files may read", origin)
    for node in walk.region(origin):
        if isinstance(node, ast.Call) and _may_read(file, node, cell.owner):
            raise Stuck(node, f"may be read by {_word(node)}()", origin)


def _may_read(file: File, call: ast.Call, owner: str) -> bool:
    """Return whether a call may look at the attributes of a class's objects outside of what the file shows."""
    names = callables.names(file, call)
    if not names or not all(name == callables.OWN or callables.is_of_library(name) for name in names):
        return True
    if callables.OWN in names or names <= _SHALLOW or all(name.startswith(_CONTAINERS) for name in names):
        return False
    if names <= _SPEAK and any(callees.method(file, owner, name) for name in ("__str__", "__repr__")):
        return False
    given = [*call.args, *(k.value for k in call.keywords)]
    return any(_may_be(file, part, owner) for argument in given for part in _parts(argument))


def _parts(argument: ast.expr) -> Iterator[ast.expr]:
    """Yield what an argument hands over: of displays what they hold."""
    if isinstance(argument, ast.Starred):
        yield from _parts(argument.value)
    elif isinstance(argument, ast.List | ast.Tuple | ast.Set):
        for element in argument.elts:
            yield from _parts(element)
    elif isinstance(argument, ast.Dict):
        for value in argument.values:
            yield from _parts(value)
    elif isinstance(argument, ast.Name | ast.Attribute | ast.Subscript | ast.Call | ast.IfExp | ast.BoolOp):
        yield argument


def _may_be(file: File, node: ast.expr, owner: str) -> bool:
    """Return whether a value may be an object of a class, or hold one."""
    types = {kind.rpartition(".")[2] for kind in (*_types(file, node), *file.seen(node).elements)}
    if owner in types or owner in callees.owners(file, node):
        return True
    return not types and isinstance(node, ast.Name | ast.Attribute)


def _types(file: File, node: ast.expr) -> set[str]:
    """Return the types of an expression; of a name that never ran here, those that it had elsewhere."""
    types = file.types(node)
    if types or not isinstance(node, ast.Name):
        return types
    return {kind for use in file.names(file.home_of(node), node.id) for kind in file.types(use)}


def _word(call: ast.Call) -> str:
    return str(getattr(call.func, "attr", getattr(call.func, "id", "a function")))
