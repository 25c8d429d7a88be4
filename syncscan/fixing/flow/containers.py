"""Lists and dictionaries that hold deferred numbers: which uses of them are possible meanwhile."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from syncscan.facts.code_pattern import matched
from syncscan.fixing.flow import callees, deferred_arithmetic
from syncscan.fixing.flow.taint import Cell, ContainerShape, Origin, Stuck, Taint, number
from syncscan.fixing.program_file import NUMBERS

if TYPE_CHECKING:
    from syncscan.fixing.flow.number_walk import NumberWalk
    from syncscan.fixing.program_file import File

_PUTS = frozenset("append insert appendleft".split())
_HARMLESS = frozenset("clear append extend insert reverse update keys".split())
"""Methods of containers that don't look at what is inside."""
_TAKES_AWAY = frozenset("pop popleft popitem".split())
"""Methods of containers that take something out, which nothing looks at in a statement of its own."""
_HOLDERS = {
    "list": ContainerShape.LIST,
    "collections.deque": ContainerShape.LIST,
    "dict": ContainerShape.DICT,
    "collections.defaultdict": ContainerShape.DICT,
    "collections.OrderedDict": ContainerShape.DICT,
}


def method(walk: NumberWalk, call: ast.Call, node: ast.expr, taint: Taint, origin: Origin) -> bool:
    """Follow `x.append(node)`; return whether the call is one."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _PUTS:
        return False
    if holder(walk, call.func.value) is not ContainerShape.LIST:
        return False
    walk.note_copy(node)
    inside(walk, call.func.value, taint, origin)
    return True


def holder(walk: NumberWalk, node: ast.expr) -> ContainerShape | None:
    """Return what kind of container an expression always is, by what the run saw."""
    types = walk.file.types(node)
    cell = walk.cell(node) if not types and isinstance(node, ast.Name | ast.Attribute) else None
    if cell is not None:  # it is written to here: what it is where it is read
        types = walk.types_read(cell)
    if not types and isinstance(node, ast.Subscript):
        types = set(walk.file.seen(node.value).elements)
    return _HOLDERS.get(next(iter(types))) if len(types) == 1 else None


def store(walk: NumberWalk, target: ast.Subscript, taint: Taint, origin: Origin) -> None:
    """Follow `x[i] = number` and `x["loss"] += number`."""
    if taint.shape is ContainerShape.NUMBER and holder(walk, target.value) is not None:
        inside(walk, target.value, taint, origin)
    else:
        walk.stuck(target, "is stored where the analysis can't follow it", origin)


def inside(walk: NumberWalk, container: ast.expr, taint: Taint, origin: Origin) -> None:
    """Mark an expression's container as holding the number from here on."""
    shape = holder(walk, container)
    if shape is None:
        walk.stuck(container, "is stored where the analysis can't follow it", origin)
        return
    if shape is ContainerShape.LIST and taint.shape in (ContainerShape.DICT, ContainerShape.TUPLE):
        shape = ContainerShape.ROWS if taint.shape is ContainerShape.DICT else ContainerShape.PAIRS
    elif taint.shape is not ContainerShape.NUMBER:
        walk.stuck(container, "is stored in a nested container", origin)
        return
    cell = walk.cell(container) if isinstance(container, ast.Name | ast.Attribute) else None
    if cell is None:
        raise Stuck(container, "is stored where no name reaches it after the loop", origin)
    walk.hold(cell, container, taint.holding(shape), origin)


def sums_of_shared_entries(walk: NumberWalk, cell: Cell, origin: Origin) -> list[ast.AugAssign]:
    """Return the statements `x[i] += y` of a container whose entries' tensors something else may hold too."""
    uses = [use for use in walk.uses(cell) if walk.in_region(use, origin)]
    if not any(_may_share(walk.file, use) for use in uses):
        return []
    entries = [entry for use in uses if isinstance(entry := walk.file.parents[use], ast.Subscript)]
    pairs = ((entry, walk.file.parents[entry]) for entry in entries)
    return [n for entry, n in pairs if isinstance(n, ast.AugAssign) and n.target is entry]


def _may_share(file: File, use: ast.expr) -> bool:
    """Return whether a use of a container takes one of its entries out, or puts in what has a name."""
    entry = file.parents[use]
    if not isinstance(entry, ast.Subscript) or entry.value is not use:
        return not isinstance(entry, ast.Compare | ast.If) and not _is_harmless(file, entry)
    statement = file.parents[entry]
    if isinstance(statement, ast.Assign) and entry in statement.targets:
        return isinstance(statement.value, ast.Name | ast.Attribute | ast.Subscript | ast.IfExp)
    return not isinstance(statement, ast.AugAssign | ast.BinOp | ast.Compare | ast.FormattedValue)


def _is_harmless(file: File, parent: ast.AST) -> bool:
    """Return whether a method or function gives no entry away: `x.keys()`, `len(x)`."""
    call = file.parents[parent] if isinstance(parent, ast.Attribute) else parent
    name = getattr(parent, "attr", ast.unparse(call.func) if isinstance(call, ast.Call) else "")
    return isinstance(call, ast.Call) and name in ("keys", "len", "clear")


def use(walk: NumberWalk, node: ast.expr, parent: ast.AST, taint: Taint, origin: Origin) -> None:
    if isinstance(parent, ast.Attribute):
        _method_of(walk, node, parent, taint, origin)
    elif isinstance(parent, ast.Subscript) and node is parent.value:
        _element(walk, node, parent, taint, origin)
    elif isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "len":
        return
    elif matched("sum($x)", parent) and taint.shape is ContainerShape.LIST:
        walk._follow_sum(node, taint, origin)
    elif isinstance(parent, ast.Call | ast.keyword):
        _handed(walk, node, parent, taint, origin)
    elif _is_asked(parent, node, taint):
        return
    elif isinstance(parent, ast.Assign | ast.AnnAssign):
        _assigned(walk, node, parent, taint, origin)
    elif isinstance(parent, ast.AugAssign) and isinstance(parent.op, ast.Add) and node is parent.value:
        inside(walk, parent.target, number(taint.types), origin)
    elif isinstance(parent, ast.Return):
        walk._in_Return(parent, node, taint, origin)
    elif isinstance(parent, ast.Tuple) and isinstance(walk.file.parents[parent], ast.Return | ast.Assign):
        walk._in_Tuple(parent, node, taint, origin)
    elif isinstance(parent, ast.For | ast.comprehension):
        walk.stuck(node, "is iterated over inside the loop", origin)
    else:
        walk.stuck(node, "is inspected inside the loop", origin)


def _method_of(walk: NumberWalk, node: ast.expr, parent: ast.Attribute, taint: Taint, origin: Origin) -> None:
    call = walk.file.parents[parent]
    called = isinstance(call, ast.Call) and call.func is parent
    if called and parent.attr in _HARMLESS:
        return
    if called and parent.attr in _TAKES_AWAY and isinstance(walk.file.parents[call], ast.Expr):
        return
    if called and parent.attr == "get" and taint.shape is ContainerShape.DICT:
        assert isinstance(call, ast.Call)
        walk.push(call, number(taint.types), origin)
    elif called and taint.shape is ContainerShape.DICT and (value := _value_of_each(walk.file, call, parent.attr)):
        walk.bind(value, Taint(ContainerShape.NUMBER, _types_read(walk, value)), origin)
    else:
        walk.stuck(node, "is inspected inside the loop", origin)


def _value_of_each(file: File, call: ast.AST, name: str) -> ast.Name | None:
    """Return `v` of `for k, v in x.items()` and `for v in x.values()`, if all its values are numbers."""
    loop = file.parents[call]
    if not isinstance(loop, ast.For) or loop.iter is not call or loop.orelse:
        return None
    value: ast.expr | None = loop.target
    if name == "items":
        value = value.elts[1] if isinstance(value, ast.Tuple) and len(value.elts) == 2 else None
    elif name != "values":
        return None
    return value if isinstance(value, ast.Name) else None


def _types_read(walk: NumberWalk, value: ast.Name) -> frozenset[str]:
    """Return the types that a loop's name was read with; `Stuck` unless all are types of numbers."""
    types = frozenset(walk.types_read(walk.cell(value)))
    if not types <= NUMBERS:
        raise Stuck(value, "is iterated over beside values that are no numbers")
    return types


def _element(walk: NumberWalk, node: ast.expr, parent: ast.Subscript, taint: Taint, origin: Origin) -> None:
    if not isinstance(parent.ctx, ast.Load):
        return
    types = walk.file.types(parent)
    inner = {
        ContainerShape.ROWS: ContainerShape.DICT,
        ContainerShape.PAIRS: ContainerShape.TUPLE,
    }.get(taint.shape)
    if inner is not None and not isinstance(parent.slice, ast.Slice):
        walk.push(parent, taint.holding(inner), origin)
    elif isinstance(parent.slice, ast.Slice):
        walk.stuck(node, "is inspected inside the loop", origin)
    elif types and types <= NUMBERS:
        walk.push(parent, number(types), origin)
    else:
        walk.stuck(parent, deferred_arithmetic.why_no_number(types), origin)


def _is_asked(parent: ast.AST, node: ast.expr, taint: Taint) -> bool:
    """Return whether a use only needs the length or the keys: `if losses`, `not losses`, `"loss" in row`."""
    if isinstance(parent, ast.Compare):
        keyed = taint.shape is ContainerShape.DICT
        return keyed and node in parent.comparators and isinstance(parent.ops[0], ast.In | ast.NotIn)
    return isinstance(parent, ast.If | ast.While) or (
        isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    )


def _handed(walk: NumberWalk, node: ast.expr, parent: ast.Call | ast.keyword, taint: Taint, origin: Origin) -> None:
    call = parent if isinstance(parent, ast.Call) else walk.file.parents[parent]
    assert isinstance(call, ast.Call)
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    whole = taint.shape in (ContainerShape.DICT, ContainerShape.TUPLE)
    if name in _PUTS and isinstance(call.func, ast.Attribute) and whole:
        inside(walk, call.func.value, taint, origin)
    elif name in ("extend", "update") and isinstance(call.func, ast.Attribute) and holder(walk, call.func.value):
        inside(walk, call.func.value, number(taint.types), origin)
    elif (function := callees.callee(walk.file, call)) is not None:
        walk.enter(function, call, node, taint, origin)
    else:
        walk.stuck(node, f"is passed to {ast.unparse(call.func)}(), which may inspect it", origin)


def _assigned(
    walk: NumberWalk, node: ast.expr, parent: ast.Assign | ast.AnnAssign, taint: Taint, origin: Origin
) -> None:
    """Follow a new container to its name; refuse a second name for a known one."""
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        walk.stuck(node, "gets a second name inside the loop", origin)
        return
    targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
    for target in targets:
        if isinstance(target, ast.Name | ast.Attribute):
            walk.bind(target, taint, origin)
        else:
            walk.stuck(node, "is stored in a nested container", origin)
