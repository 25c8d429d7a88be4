"""Deferred values, the names that hold them, and which uses of lists and dictionaries of them are possible."""

from __future__ import annotations

import ast
import enum
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from syncscan.fixing.program_file import NUMBERS
from syncscan.source.code_pattern import matched
from syncscan.source.tree import Loop, Scope

if TYPE_CHECKING:
    from syncscan.fixing.flow.number_walk import NumberWalk

NOT_RUN = "is used by code that didn't run"


class ContainerShape(enum.Enum):
    NUMBER = "number"
    LIST = "list"
    """A list of numbers."""
    DICT = "dict"
    """A dictionary whose values are numbers, some of them deferred."""
    ROWS = "rows"
    """A list of such dictionaries."""


class Origin:
    """Where a deferred number enters a function: the read itself, or a call that returns it.

    It could be read behind each of the loops `homes`, outermost first; None first where the function can leave that to
    its callers. `behind` is the origin that this one is a call of the function of.
    """

    def __init__(self, node: ast.expr, homes: list[Loop | None], behind: Origin | None) -> None:
        self.node = node
        self.homes = homes
        self.behind = behind

    @property
    def home(self) -> Loop | None:
        """The loop after which the number is read; None if the callers read it."""
        return self.homes[0]


class Taint(msgspec.Struct, frozen=True):
    origin: Origin
    types: frozenset[str]
    """Types of the numbers in the unchanged program: `float`, `int`, `bool`."""
    shape: ContainerShape = ContainerShape.NUMBER

    def within(self, shape: ContainerShape) -> Taint:
        """Return a container of such numbers."""
        return Taint(self.origin, self.types, shape)

    def number(self, types: Iterable[str] | None = None) -> Taint:
        """Return one such number, or one of other types."""
        return Taint(self.origin, self.types if types is None else frozenset(types))

    @property
    def is_integer(self) -> bool:
        return self.types <= {"int", "bool"}


class Local(NamedTuple):
    """A name of a function or of the module."""

    scope: Scope
    name: str


class Stuck(Exception):
    """Raised where the host needs a deferred number; `why` ends a sentence: `decides what runs next`."""

    def __init__(self, node: ast.AST, why: str, origin: Origin | None = None) -> None:
        super().__init__(why)
        self.node, self.why, self.origin = node, why, origin


def why_no_number(types: Collection[str]) -> str:
    """Return why a value whose types are these isn't surely a number: it never ran, or other calls make it more."""
    more = sorted(set(types) - NUMBERS)
    if not more:
        return NOT_RUN
    kind = "tensor" if any(name.endswith("Tensor") for name in more) else more[0]
    return f"goes through code that other calls give a {kind}"


_ADDS = "$of.append($x) | $of.appendleft($x) | $of.insert($at, $x)"
_JOINS = "$of.extend($x) | $of.update($x)"
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


def added(walk: NumberWalk, call: ast.Call, taint: Taint) -> str | None:
    """Follow `x.append(…)`; return why the host needs the number, and None where the call is none such."""
    add = matched(_ADDS, call)
    return inside(walk, add.of, taint) if add and _holder(walk, add.of) is ContainerShape.LIST else None


def _holder(walk: NumberWalk, node: ast.expr) -> ContainerShape | None:
    """Return what kind of container an expression always is, by what the run saw."""
    types = walk.file.types(node) or walk.types_read(walk.cell(node))  # where it is written to: what it is elsewhere
    return _HOLDERS.get(next(iter(types))) if len(types) == 1 else None


def inside(walk: NumberWalk, container: ast.expr, taint: Taint) -> str:
    """Mark an expression's container as holding the number from here on."""
    cell, shape = walk.cell(container), _holder(walk, container)
    if cell is None or shape is None:
        return "is stored where the analysis can't follow it"
    if taint.shape is ContainerShape.DICT and shape is ContainerShape.LIST:
        shape = ContainerShape.ROWS
    elif taint.shape is not ContainerShape.NUMBER:
        raise Stuck(container, "is stored in a nested container", taint.origin)
    return walk.hold(cell, container, taint.within(shape))


def use(walk: NumberWalk, node: ast.expr, parent: ast.AST, taint: Taint) -> str:
    """Follow a use of a container; return why the host needs what is in it, or nothing."""
    is_dict = taint.shape is ContainerShape.DICT
    match parent:
        case ast.Attribute():
            return _method_of(walk, parent, taint)
        case ast.Subscript() if node is parent.value:
            return _element(walk, parent, taint)
        case ast.Call(func=ast.Name(id="len")) | ast.If() | ast.While() | ast.UnaryOp(op=ast.Not()):
            return ""
        case ast.Compare(ops=[ast.In() | ast.NotIn()]) if is_dict:
            return ""
        case ast.Call():
            return _handed(walk, node, parent, taint)
        case ast.Assign() | ast.AnnAssign() if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            return walk.assigned(parent, taint)
        case ast.AugAssign(op=ast.Add()) if node is parent.value:
            return inside(walk, parent.target, taint.number())
        case ast.Return():
            return walk.returned(parent, taint)
    return _INSPECTED


def _method_of(walk: NumberWalk, method: ast.Attribute, taint: Taint) -> str:
    call = walk.file.parents[method]
    if not isinstance(call, ast.Call) or call.func is not method:
        return _INSPECTED
    # what is taken out in a statement of its own is looked at by nothing
    dropped = method.attr in ("pop", "popleft", "popitem") and isinstance(walk.file.parents[call], ast.Expr)
    if method.attr in _HARMLESS or dropped:
        return ""
    gets = method.attr == "get" and taint.shape is ContainerShape.DICT
    return walk.push(call, taint.number()) if gets else _INSPECTED


def _element(walk: NumberWalk, part: ast.Subscript, taint: Taint) -> str:
    types = walk.file.types(part)
    if not isinstance(part.ctx, ast.Load):
        return ""
    if isinstance(part.slice, ast.Slice) or taint.shape is ContainerShape.ROWS:
        return _INSPECTED
    if types and types <= NUMBERS:
        return walk.push(part, taint.number(types))
    return why_no_number(types)


def _handed(walk: NumberWalk, node: ast.expr, call: ast.Call, taint: Taint) -> str:
    if matched("sum($x)", call) and taint.shape is ContainerShape.LIST:
        return walk.summed(call, taint)
    if (add := matched(_ADDS, call)) and taint.shape is ContainerShape.DICT:
        return inside(walk, add.of, taint)
    if (join := matched(_JOINS, call)) and _holder(walk, join.of):
        return inside(walk, join.of, taint.number())
    return f"is passed to {ast.unparse(call.func)}(), which may inspect it"
