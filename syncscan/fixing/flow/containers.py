"""Lists and dictionaries that hold deferred numbers: which uses of them are possible meanwhile."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from syncscan.fixing.flow import deferred_arithmetic
from syncscan.fixing.flow.taint import ContainerShape, Origin, Stuck, Taint, number
from syncscan.fixing.program_file import NUMBERS
from syncscan.source.code_pattern import matched

if TYPE_CHECKING:
    from syncscan.fixing.flow.number_walk import NumberWalk

_PUTS = frozenset("append insert appendleft".split())
_HARMLESS = frozenset("clear append extend insert reverse update keys".split())
"""Methods of containers that don't look at what is inside."""
_HOLDERS = {
    "list": ContainerShape.LIST,
    "collections.deque": ContainerShape.LIST,
    "dict": ContainerShape.DICT,
    "collections.defaultdict": ContainerShape.DICT,
    "collections.OrderedDict": ContainerShape.DICT,
}
_INSPECTED = "is inspected inside the loop"


def method(walk: NumberWalk, call: ast.Call, node: ast.expr, taint: Taint, origin: Origin) -> bool:
    """Follow `x.append(node)`; return whether the call is one."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _PUTS:
        return False
    if _holder(walk, call.func.value) is not ContainerShape.LIST:
        return False
    walk.note_copy(node)
    inside(walk, call.func.value, taint, origin)
    return True


def _holder(walk: NumberWalk, node: ast.expr) -> ContainerShape | None:
    """Return what kind of container an expression always is, by what the run saw."""
    types = walk.file.types(node) or walk.types_read(walk.cell(node))  # where it is written to: what it is elsewhere
    return _HOLDERS.get(next(iter(types))) if len(types) == 1 else None


def inside(walk: NumberWalk, container: ast.expr, taint: Taint, origin: Origin) -> None:
    """Mark an expression's container as holding the number from here on."""
    cell, shape = walk.cell(container), _holder(walk, container)
    if cell is None or shape is None:
        walk.stuck(container, "is stored where the analysis can't follow it", origin)
        return
    if taint.shape is ContainerShape.DICT and shape is ContainerShape.LIST:
        shape = ContainerShape.ROWS
    elif taint.shape is not ContainerShape.NUMBER:
        raise Stuck(container, "is stored in a nested container", origin)
    walk.hold(cell, container, taint.holding(shape), origin)


def use(walk: NumberWalk, node: ast.expr, parent: ast.AST, taint: Taint, origin: Origin) -> None:
    outer = walk.file.parents.get(parent)
    match parent:
        case ast.Attribute():
            _method_of(walk, node, parent, taint, origin)
        case ast.Subscript() if node is parent.value:
            _element(walk, node, parent, taint, origin)
        case ast.Call(func=ast.Name(id="len")) | ast.If() | ast.While() | ast.UnaryOp(op=ast.Not()):
            return
        case ast.Compare(ops=[ast.In() | ast.NotIn()]) if taint.shape is ContainerShape.DICT:
            return
        case ast.Call() if matched("sum($x)", parent) and taint.shape is ContainerShape.LIST:
            walk.follow_sum(node, taint, origin)
        case ast.Call():
            _handed(walk, node, parent, taint, origin)
        case ast.Assign() | ast.AnnAssign() if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            for target in parent.targets if isinstance(parent, ast.Assign) else [parent.target]:
                walk.bind(target, taint, origin)
        case ast.AugAssign(op=ast.Add()) if node is parent.value:
            inside(walk, parent.target, number(taint.types), origin)
        case ast.Return():
            walk._in_Return(parent, node, taint, origin)
        case ast.Tuple() if isinstance(outer, ast.Return | ast.Assign):
            walk._in_Tuple(parent, node, taint, origin)
        case _:
            walk.stuck(node, _INSPECTED, origin)


def _method_of(walk: NumberWalk, node: ast.expr, parent: ast.Attribute, taint: Taint, origin: Origin) -> None:
    call = walk.file.parents[parent]
    called = isinstance(call, ast.Call) and call.func is parent
    # what is taken out in a statement of its own is looked at by nothing
    dropped = parent.attr in ("pop", "popleft", "popitem") and isinstance(walk.file.parents[call], ast.Expr)
    if called and (parent.attr in _HARMLESS or dropped):
        return
    if isinstance(call, ast.Call) and called and parent.attr == "get" and taint.shape is ContainerShape.DICT:
        walk.push(call, number(taint.types), origin)
    else:
        walk.stuck(node, _INSPECTED, origin)


def _element(walk: NumberWalk, node: ast.expr, parent: ast.Subscript, taint: Taint, origin: Origin) -> None:
    types = walk.file.types(parent)
    if not isinstance(parent.ctx, ast.Load):
        return
    if isinstance(parent.slice, ast.Slice):
        walk.stuck(node, _INSPECTED, origin)
    elif taint.shape is ContainerShape.ROWS:
        walk.push(parent, taint.holding(ContainerShape.DICT), origin)
    elif types and types <= NUMBERS:
        walk.push(parent, number(types), origin)
    else:
        walk.stuck(parent, deferred_arithmetic.why_no_number(types), origin)


def _handed(walk: NumberWalk, node: ast.expr, call: ast.Call, taint: Taint, origin: Origin) -> None:
    put = matched("$of.append($x) | $of.appendleft($x) | $of.extend($x) | $of.update($x)", call)
    if put and taint.shape is ContainerShape.DICT and matched("$of.append(...) | $of.appendleft(...)", call):
        inside(walk, put.of, taint, origin)
    elif put and matched("$of.extend(...) | $of.update(...)", call) and _holder(walk, put.of):
        inside(walk, put.of, number(taint.types), origin)
    else:
        walk.stuck(node, f"is passed to {ast.unparse(call.func)}(), which may inspect it", origin)
