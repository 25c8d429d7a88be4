"""Arithmetic with deferred numbers: which operations a tensor can replace, and how they are written."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import TYPE_CHECKING

from syncscan.fixing import expressions
from syncscan.fixing.edits import template
from syncscan.fixing.flow.deferred_values import NOT_RUN, Taint, why_no_number
from syncscan.fixing.program_file import NUMBERS
from syncscan.source.code_pattern import matched

if TYPE_CHECKING:
    from syncscan.fixing.flow.number_walk import NumberWalk

_OPERATIONS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_TAKES_TENSORS = frozenset("pow mul add sub div multiply divide subtract true_divide".split())
"""Functions of torch's and methods of tensors that take a tensor without dimensions as they take a number."""
_GROWS = "may grow beyond 64 bits"
_COMPARED = "is compared by the host"
CONTROLS = "controls what runs next"
_DIVISOR = "is a divisor, and Python raises if it is 0"


def operation(walk: NumberWalk, parent: ast.BinOp, node: ast.expr, taint: Taint) -> str:
    """Follow arithmetic with the number; return why the host needs it there, or nothing."""
    other = parent.right if node is parent.left else parent.left
    if isinstance(parent.op, ast.Mod) and "str" in walk.file.types(parent.left):
        return "is printed or logged in every step"
    if not isinstance(parent.op, _OPERATIONS):
        return f"is needed by the host here ({type(parent.op).__name__.lower()})"
    if walk.is_number(other):
        return _with_number(walk, parent, node, other, taint)
    if _is_deferred_sum(walk, other) and isinstance(parent.op, ast.Div) and node is parent.right:
        return _DIVISOR
    if walk.file.device_tensor(other) is not None:
        return _with_tensor(walk, node, other, taint)
    return NOT_RUN if not walk.file.types(other) else "is combined with something that isn't a number"


def _with_number(walk: NumberWalk, parent: ast.BinOp, node: ast.expr, other: ast.expr, taint: Taint) -> str:
    types = walk.file.types(parent)
    if not types or not types <= NUMBERS:
        return why_no_number(types)
    if isinstance(parent.op, ast.Div) and (node is parent.right or _may_be_zero(walk, other)):
        return _DIVISOR
    if types <= {"int", "bool"} and isinstance(parent.op, ast.Mult | ast.Pow):
        return _GROWS
    return _convert(walk, node, taint, types) or walk.push(parent, taint.number(types))


def _is_deferred_sum(walk: NumberWalk, node: ast.expr) -> bool:
    """Return whether a tensor is most likely a number that was deferred before: one in double precision."""
    tensor = walk.file.device_tensor(node)
    return tensor is not None and tensor.dims == 0 and tensor.dtype == "float64"


def _may_be_zero(walk: NumberWalk, node: ast.expr) -> bool:
    """Return whether a divisor may be 0: it was in the run, or it is read from the device, such as a number of hits."""
    if isinstance(node, ast.Constant):
        return not node.value
    if matched("max(...)", node):
        given = [a.value for a in node.args if isinstance(a, ast.Constant)]  # type: ignore[attr-defined]
        return not any(isinstance(value, int | float) and value > 0 for value in given)
    return walk.file.seen(node).zero or any(n in walk.reads for n in ast.walk(node))


def _convert(walk: NumberWalk, node: ast.expr, taint: Taint, types: Collection[str]) -> str:
    """Have torch compute with a number as Python does: integers that meet floats in double precision."""
    walk.how.computed = True
    kind = "float" if "float" in types and taint.is_integer else "int" if taint.types == {"bool"} else ""
    if kind and node is not walk.site.node:
        return "becomes a number of another type"
    walk.how.types |= {kind} - {""}
    return ""


def _with_tensor(walk: NumberWalk, node: ast.expr, other: ast.expr, taint: Taint) -> str:
    """Give a device tensor the deferred number as a tensor, with a dtype that changes nothing."""
    tensor = walk.file.device_tensor(other)
    assert tensor is not None
    if not tensor.dtype.startswith(("float", "bfloat")) or len(taint.types) != 1:
        return "is combined with an integer tensor"
    if node is walk.site.node:
        walk.how.raw = True
        if not taint.is_integer and walk.site.tensor.dtype != tensor.dtype:
            walk.how.cast = f".to(torch.{tensor.dtype})"
    return "" if node is walk.site.node or taint.is_integer else "is combined with a tensor of another type"


def comparison(walk: NumberWalk, parent: ast.Compare, node: ast.expr, taint: Taint) -> str:
    if matched("$x is None | $x is not None", parent):
        return ""
    sides = [parent.left, *parent.comparators]
    other = sides[1] if node is sides[0] else sides[0]
    if len(sides) != 2 or not isinstance(parent.ops[0], _ORDER) or not walk.is_number(other):
        return _COMPARED
    outer = walk.file.parents[parent]
    decides = isinstance(outer, ast.IfExp) and outer.test is parent
    if decides or isinstance(outer, ast.While | ast.Assert | ast.BoolOp | ast.comprehension | ast.UnaryOp):
        return CONTROLS
    return walk.compute(parent, taint.number({"bool"}))


def branch(walk: NumberWalk, parent: ast.If, node: ast.expr, taint: Taint) -> str:
    """Follow `if x < best: best = x`, which becomes `best = torch.where(x < best, x, best)`."""
    given = matched("$target = $value", parent.body[0]) if len(parent.body) == 1 else None
    outer = walk.file.parents[parent]
    is_elif = isinstance(outer, ast.If) and parent in outer.orelse
    if not isinstance(node, ast.Compare) or parent.orelse or given is None or is_elif:
        return CONTROLS
    target, value = given.target, given.value
    kinds = walk.file.types(value)
    if not isinstance(target, ast.Name) or not walk.is_number(value) or _may_raise(walk, value):
        return CONTROLS
    if len(kinds) != 1 or walk.types_read(walk.cell(target)) != kinds:
        return CONTROLS
    if "float" in kinds and not _is_deferred(walk, value):
        return CONTROLS
    walk.as_tensor(taint, parent.test)
    text, read = walk.file.text, walk.site.node
    # a value that reads the same number again takes the read in the condition
    chosen = read if walk.file.within(read, parent.test) and text.code(value) == text.code(read) else value
    code = "$best = torch.where($test, $new, $best)"
    walk.draft.replace(parent, template(code, best=target.id, test=parent.test, new=chosen))
    return walk.bind(target, taint.number(kinds))


def _may_raise(walk: NumberWalk, value: ast.expr) -> bool:
    """Return whether an expression calls something, or divides by what may be 0, which the condition may prevent."""
    for node in ast.walk(value):
        if isinstance(node, ast.Call) and node not in walk.reads:
            return True
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
            constant = isinstance(node.right, ast.Constant) and bool(node.right.value)
            if not constant or not isinstance(node.op, ast.Div):
                return True
    return False


def _is_deferred(walk: NumberWalk, value: ast.expr) -> bool:
    """Return whether a value is deferred, through this read or another one."""
    if any(n in walk.reads or n in walk.tainted for n in ast.walk(value)):
        return True
    return any(walk.cell(value) == held for held, _ in walk.cells)


def added(walk: NumberWalk, parent: ast.AugAssign, node: ast.expr, taint: Taint) -> str:
    """Follow `total += node`."""
    if isinstance(parent.op, ast.Div):
        return _DIVISOR
    if not isinstance(parent.op, ast.Add | ast.Sub | ast.Mult):
        return "is needed by the host here"
    if isinstance(parent.op, ast.Mult) and taint.is_integer:
        return _GROWS
    target = parent.target
    if isinstance(target, ast.Attribute):
        return walk.bind(target, taint)
    types = walk.file.types(parent.value) | _types_of_target(walk, target)
    if not types <= NUMBERS:
        return "is added to something that isn't a number"
    if isinstance(target, ast.Subscript) and types >= {"int", "float"} and taint.is_integer:
        return "is added to an entry that may be an integer or a float"
    result = {"float"} if "float" in types else {"int"}
    return _convert(walk, node, taint, result) or walk.bind(target, taint.number(result))


def why_not_in_place(walk: NumberWalk, statement: ast.AugAssign, taint: Taint) -> str:
    """Return why `x += y` can't be computed of a deferred x; empty where it can."""
    value = statement.value
    if not isinstance(statement.op, ast.Add | ast.Sub | ast.Mult | ast.Div) or not walk.is_number(value):
        return "is updated by an operator that works differently on tensors"
    if isinstance(statement.op, ast.Div) and (taint.is_integer or _may_be_zero(walk, value)):
        return "is divided, and Python raises if the divisor is 0"
    if taint.is_integer and isinstance(statement.op, ast.Mult):
        return _GROWS
    return "is an integer that becomes a float" if taint.is_integer and "float" in walk.file.types(value) else ""


def _types_of_target(walk: NumberWalk, target: ast.expr) -> set[str]:
    """Return the types of a sum's target: of all its assigned values, and where it is read."""
    if isinstance(target, ast.Subscript):
        return _types_of_entry(walk, target) or set(walk.file.seen(target.value).elements)
    if not isinstance(target, ast.Name):
        return {"unknown"}
    values = [value for store in walk.file.stores(target) if (value := walk.file.value_given(store)) is not None]
    return walk.types_read(walk.cell(target)).union(*map(walk.file.types, values)) - {"NoneType"}


def _types_of_entry(walk: NumberWalk, target: ast.Subscript) -> set[str]:
    """Return the types that the displays of a dictionary give an entry; empty if they don't show it."""
    cell = walk.cell(target.value)
    types: set[str] = set()
    for store in walk.stores(cell) if cell is not None else ():
        display = walk.file.value_given(store)
        if not isinstance(display, ast.Dict) or not isinstance(target.slice, ast.Constant):
            return set()
        pairs = zip(display.keys, display.values, strict=True)
        values = [v for k, v in pairs if isinstance(k, ast.Constant) and k.value == target.slice.value]
        if len(values) != 1:
            return set()
        types |= walk.file.types(values[0])
    return types


def write_sum(walk: NumberWalk, statement: ast.AugAssign) -> None:
    """Write `x = x + y` for `x += y`."""
    sign, target = expressions.SIGNS[type(statement.op)], walk.file.text.code(statement.target)
    walk.draft.replace(statement, template(f"$sum = $sum {sign} $value", sum=target, value=statement.value))


def function(walk: NumberWalk, call: ast.Call, node: ast.expr, taint: Taint) -> str | None:
    """Follow a call of a numeric function; return why the host needs the number, and None for other calls."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if name in NUMBERS and len(call.args) == 1:
        return _converted(walk, call, node, taint, name)
    if name == "abs":
        return walk.compute(call, taint)
    if matched("math.sqrt($x ** 2) | math.sqrt($x ** 4)", call):
        walk.as_tensor(taint, node)
        walk.draft.replace(call, template("$x.sqrt()", x=node))
        return walk.compute(call, taint)
    if extreme := matched("min($first, $second) | max($first, $second)", call):
        return _extreme(walk, call, taint, extreme.first, extreme.second)
    method = matched("torch.$name($x, $y) | $x.$name($y)", call)
    if not method or method.name not in _TAKES_TENSORS:
        return None
    other = method.y if node is method.x else method.x
    return None if walk.file.device_tensor(other) is None else _with_tensor(walk, node, other, taint)


def _converted(walk: NumberWalk, call: ast.Call, node: ast.expr, taint: Taint, name: str) -> str | None:
    """Follow `float(x)` of a deferred x; None where no tensor can replace it."""
    outer = walk.file.parents[call]
    other = (outer.right if call is outer.left else outer.left) if isinstance(outer, ast.BinOp) else None
    by_tensor = other is not None and walk.file.device_tensor(other) is not None
    suffix = "" if taint.types == {name} or by_tensor else {"float": ".double()", "int": ".long()"}.get(name)
    if suffix is None or (taint.types != {name} and not taint.is_integer):
        return None
    if suffix:
        walk.as_tensor(taint, node)
    if suffix == ".double()" and not walk.file.has_float64:
        return None
    walk.draft.replace(call, template(f"$x{suffix}", x=node))
    return walk.push(call, taint.number(taint.types if by_tensor else {name}))


def _extreme(walk: NumberWalk, call: ast.Call, taint: Taint, first: ast.expr, second: ast.expr) -> str:
    """Follow `min(a, b)`: b if b < a, otherwise a, with NaN too."""
    kinds = walk.file.types(first) | walk.file.types(second)
    statement = walk.file.statement_of(call)
    simple = isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.Return)
    if len(kinds) != 1 or not all(map(walk.is_number, call.args)) or not simple:
        return _COMPARED
    names: dict[ast.expr, str] = {}
    sign = "<" if matched("min(...)", call) else ">"
    for argument in call.args:
        if not isinstance(argument, ast.Name | ast.Attribute | ast.Constant):
            names[argument] = _word_for(walk, statement, [*names.values()])
            walk.draft.put_before(statement, template("$name = $value", name=names[argument], value=argument))
    walk.how.computed = True
    walk.as_tensor(taint, first, second)

    a, b = (names.get(x) or x for x in (first, second))
    walk.draft.replace(call, template(f"torch.where($b {sign} $a, $b, $a)", a=a, b=b))
    return walk.push(call, taint.number(kinds))


def _word_for(walk: NumberWalk, statement: ast.stmt, taken: list[str]) -> str:
    """Return a name for an expression that is written twice, after its target."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    target = targets[0]
    word = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "value")
    return walk.file.fresh(f"{word}_now", *taken)
