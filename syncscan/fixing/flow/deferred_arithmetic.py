"""Arithmetic with deferred numbers: which operations a tensor can replace, and how they are written."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import TYPE_CHECKING

from syncscan.fixing.edits import Render, Template
from syncscan.fixing.flow.number_reads import callable_source
from syncscan.fixing.flow.taint import Local, Origin, Taint, number
from syncscan.fixing.program_file import NUMBERS
from syncscan.source.code_pattern import matched

if TYPE_CHECKING:
    from syncscan.fixing.flow.number_walk import NumberWalk

_OPERATIONS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_TAKES_TENSORS = frozenset("pow mul add sub div multiply divide subtract true_divide".split())
"""Functions of torch's and methods of tensors that take a tensor without dimensions as they take a number."""
_SIGN = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
_DIVISOR = "is a divisor, and Python raises if it is 0"
_NOT_RUN = "is used by code that didn't run"


def arithmetic(walk: NumberWalk, parent: ast.BinOp, node: ast.expr, taint: Taint, origin: Origin) -> None:
    other = parent.right if node is parent.left else parent.left
    if isinstance(parent.op, ast.Mod) and "str" in walk.file.types(parent.left):
        walk.stuck(node, "is printed or logged in every step", origin)
    elif not isinstance(parent.op, _OPERATIONS):
        walk.stuck(node, f"is needed by the host here ({type(parent.op).__name__.lower()})", origin)
    elif walk.is_number(other):
        _with_number(walk, parent, node, other, taint, origin)
    elif _is_deferred_sum(walk, other) and isinstance(parent.op, ast.Div) and node is parent.right:
        walk.stuck(node, _DIVISOR, origin)
    elif walk.file.device_tensor(other) is not None:
        with_tensor(walk, node, other, taint, origin)
    else:
        walk.stuck(
            node, _NOT_RUN if not walk.file.types(other) else "is combined with something that isn't a number", origin
        )


def _with_number(
    walk: NumberWalk, parent: ast.BinOp, node: ast.expr, other: ast.expr, taint: Taint, origin: Origin
) -> None:
    types = frozenset(walk.file.types(parent))
    if not types or not types <= NUMBERS:
        walk.stuck(node, why_no_number(types), origin)
        return
    if isinstance(parent.op, ast.Div) and (node is parent.right or _may_be_zero(walk, other)):
        walk.stuck(node, _DIVISOR, origin)
        return
    if types <= {"int", "bool"} and isinstance(parent.op, ast.Mult | ast.Pow):
        walk.stuck(node, "may grow beyond 64 bits", origin)
        return
    _coerce(walk, node, taint, types, origin)
    walk.push(parent, number(types), origin)


def why_no_number(types: Collection[str]) -> str:
    """Return why a value whose types are these isn't surely a number: it never ran, or other calls make it more."""
    more = sorted(set(types) - NUMBERS)
    if not more:
        return _NOT_RUN
    kind = "tensor" if any(name.endswith("Tensor") for name in more) else more[0]
    return f"goes through code that other calls give a {kind}"


def _is_deferred_sum(walk: NumberWalk, node: ast.expr) -> bool:
    """Return whether a tensor is most likely a number that was deferred before: one in double precision."""
    tensor = walk.file.device_tensor(node)
    return tensor is not None and tensor.dims == 0 and tensor.dtype == "float64"


def _may_be_zero(walk: NumberWalk, node: ast.expr) -> bool:
    """Return whether a divisor may be 0: it was in the run, or it is read from the device, such as a number of hits."""
    if isinstance(node, ast.Constant):
        return not node.value
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "max":
        given = [a.value for a in node.args if isinstance(a, ast.Constant)]
        return not any(isinstance(value, int | float) and value > 0 for value in given)
    return walk.file.seen(node).zero or any(n in walk.reads for n in ast.walk(node))


def _coerce(walk: NumberWalk, node: ast.expr, taint: Taint, types: frozenset[str], origin: Origin) -> None:
    """Write a number so that torch computes with it as Python does: integers that meet floats in double precision."""
    walk.how.computed = True
    kind = "float" if "float" in types and taint.types <= {"int", "bool"} else "int" if taint.types == {"bool"} else ""
    if kind and node is walk.site.node:
        walk.how.types |= {kind}
    elif kind:
        walk.stuck(node, "becomes a number of another type", origin)


def with_tensor(walk: NumberWalk, node: ast.expr, other: ast.expr, taint: Taint, origin: Origin) -> None:
    """Give a device tensor the deferred number as a tensor, with a dtype that changes nothing."""
    tensor = walk.file.device_tensor(other)
    assert tensor is not None
    is_integer = taint.types <= {"int", "bool"}
    floating = tensor.dtype.startswith(("float", "bfloat"))
    if not floating or taint.types not in ({"float"}, {"int"}, {"bool"}):
        walk.stuck(node, "is combined with an integer tensor", origin)
    elif node is walk.site.node:
        walk.how.raw = True
        if not is_integer and walk.site.tensor.dtype != tensor.dtype:
            walk.how.cast = f".to(torch.{tensor.dtype})"
    elif not is_integer:
        walk.stuck(node, "is combined with a tensor of another type", origin)


def comparison(walk: NumberWalk, parent: ast.Compare, node: ast.expr, origin: Origin) -> None:
    sides = [parent.left, *parent.comparators]
    of_none = any(isinstance(side, ast.Constant) and side.value is None for side in sides)
    if of_none and len(sides) == 2 and isinstance(parent.ops[0], ast.Is | ast.IsNot):
        return
    other = sides[1] if node is sides[0] else sides[0]
    if len(sides) != 2 or not isinstance(parent.ops[0], _ORDER) or not walk.is_number(other):
        walk.stuck(node, "is compared by the host", origin)
        return
    outer = walk.file.parents[parent]
    if isinstance(outer, ast.While | ast.Assert | ast.BoolOp | ast.comprehension) or (
        isinstance(outer, ast.UnaryOp | ast.IfExp) and getattr(outer, "test", parent) is parent
    ):
        walk.stuck(node, "controls what runs next", origin)
        return
    walk.compute(parent, number({"bool"}), origin)


def branch(walk: NumberWalk, parent: ast.If, node: ast.expr, origin: Origin) -> None:
    """Follow `if x < best: best = x`, which becomes `best = torch.where(x < best, x, best)`."""
    given = _plain_assignment(walk, parent.body[0]) if len(parent.body) == 1 else None
    outer = walk.file.parents[parent]
    is_elif = isinstance(outer, ast.If) and parent in outer.orelse
    if not isinstance(node, ast.Compare) or parent.orelse or given is None or is_elif:
        walk.stuck(node, "controls what runs next", origin)
        return
    target, value = given
    kinds = walk.file.types(value)
    if (
        len(kinds) != 1
        or walk.types_read(walk.cell(target)) != kinds
        or ("float" in kinds and not _put_off(walk, value))
    ):
        walk.stuck(node, "controls what runs next", origin)
        return
    walk.as_tensor(origin, parent.test)
    text, read = walk.file.text, walk.site.node
    # a value that reads the same number again takes the read in the condition
    same = walk.file.within(read, parent.test) and text.code(value) == text.code(read)
    name = text.code(target)

    def chosen(render: Render) -> str:
        return f"{name} = torch.where({render(parent.test)}, {render(read if same else value)}, {name})"

    walk.write(parent, chosen)
    walk.bind(target, number(kinds), origin)


def _plain_assignment(walk: NumberWalk, statement: ast.stmt) -> tuple[ast.expr, ast.expr] | None:
    """Return target and value of a plain assignment of a number; None for other statements."""
    assign = matched("$target = $value", statement)
    if not assign or not isinstance(assign.target, ast.Name) or not walk.is_number(assign.value):
        return None
    calls = [n for n in ast.walk(assign.value) if isinstance(n, ast.Call) and n not in walk.reads]
    return (assign.target, assign.value) if not calls and not _may_raise(assign.value) else None


def _may_raise(value: ast.expr) -> bool:
    """Return whether an expression divides by what may be 0, or raises to a power, which the condition may prevent."""
    for node in ast.walk(value):
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
            constant = isinstance(node.right, ast.Constant) and bool(node.right.value)
            if not constant or not isinstance(node.op, ast.Div):
                return True
    return False


def _put_off(walk: NumberWalk, value: ast.expr) -> bool:
    """Return whether a value is deferred, through this read or another one."""
    if any(n in walk.reads or n in walk.tainted for n in ast.walk(value)):
        return True
    return any(walk.cell(value) == held for held, _ in walk.cells)


def added(walk: NumberWalk, parent: ast.AugAssign, node: ast.expr, taint: Taint, origin: Origin) -> None:
    """Follow `total += node`."""
    if not isinstance(parent.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
        walk.stuck(node, "is needed by the host here", origin)
        return
    if isinstance(parent.op, ast.Mult) and taint.types <= {"int", "bool"}:
        walk.stuck(node, "may grow beyond 64 bits", origin)
        return
    if isinstance(parent.op, ast.Div):
        walk.stuck(node, _DIVISOR, origin)
        return
    target = parent.target
    if isinstance(target, ast.Attribute):
        walk.bind(target, taint, origin)
        return
    types = walk.file.types(parent.value) | _types_of_target(walk, target)
    if not types <= NUMBERS:
        walk.stuck(node, "is added to something that isn't a number", origin)
        return
    if isinstance(target, ast.Subscript) and types >= {"int", "float"} and taint.types <= {"int", "bool"}:
        walk.stuck(node, "is added to an entry that may be an integer or a float", origin)
        return
    result = frozenset({"float"} if "float" in types else {"int"})
    _coerce(walk, node, taint, result, origin)
    walk.bind(target, number(result), origin)


def in_place(walk: NumberWalk, cell: Local, statement: ast.AugAssign, taint: Taint, origin: Origin) -> None:
    """Follow `x += y` with a deferred x."""
    value, target = statement.value, statement.target
    is_integer = taint.types <= {"int", "bool"}
    divides = isinstance(statement.op, ast.Div)
    if not isinstance(statement.op, ast.Add | ast.Sub | ast.Mult | ast.Div) or not walk.is_number(value):
        walk.stuck(target, "is updated by an operator that works differently on tensors", origin)
    elif divides and (is_integer or _may_be_zero(walk, value)):
        walk.stuck(target, "is divided, and Python raises if the divisor is 0", origin)
    elif is_integer and isinstance(statement.op, ast.Mult):
        walk.stuck(target, "may grow beyond 64 bits", origin)
    elif is_integer and "float" in walk.file.types(value):
        walk.stuck(target, "is an integer that becomes a float", origin)
    else:
        walk.how.computed = True
        walk.added[statement] = cell


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
    sign = _SIGN[type(statement.op)]
    value = statement.value
    target = walk.file.text.code(statement.target)

    def sum_of(render: Render) -> str:
        right = render(value)
        simple = isinstance(value, ast.Name | ast.Attribute | ast.Subscript | ast.Call | ast.Constant)
        return f"{target} = {target} {sign} {right if simple else f'({right})'}"

    walk.draft.replace(statement, sum_of)


def function(walk: NumberWalk, call: ast.Call, node: ast.expr, taint: Taint, origin: Origin) -> bool:
    """Follow a call of a numeric function; return whether it is one."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if name in NUMBERS and len(call.args) == 1:
        return _cast_call(walk, call, node, taint, origin, name)
    if name == "abs":
        walk.compute(call, taint, origin)
    elif matched("math.sqrt($x ** 2) | math.sqrt($x ** 4)", call):
        walk.as_tensor(origin, node)
        walk.write(call, lambda render: f"{callable_source(render(node))}.sqrt()")
        walk.compute(call, taint, origin)
    elif extreme := matched("min($first, $second) | max($first, $second)", call):
        _extreme(walk, call, node, origin, extreme.first, extreme.second)
    else:
        return _torch_function(walk, call, node, taint, origin)
    return True


def _cast_call(walk: NumberWalk, call: ast.Call, node: ast.expr, taint: Taint, origin: Origin, name: str) -> bool:
    """Follow `float(x)` of a deferred x; return whether a tensor can replace it."""
    outer = walk.file.parents[call]
    other = (outer.right if call is outer.left else outer.left) if isinstance(outer, ast.BinOp) else None
    by_tensor = other is not None and walk.file.device_tensor(other) is not None
    suffix = {"float": ".double()", "int": ".long()"}.get(name, "") if taint.types != {name} and not by_tensor else ""
    if taint.types != {name} and not (taint.types <= {"int", "bool"} and (by_tensor or suffix)):
        return False
    if suffix:
        walk.as_tensor(origin, node)
    if suffix == ".double()" and not walk.file.has_float64:
        return False
    walk.write(call, lambda render: f"{callable_source(render(node))}{suffix}")
    walk.push(call, number(taint.types if by_tensor else {name}), origin)
    return True


def _extreme(
    walk: NumberWalk, call: ast.Call, node: ast.expr, origin: Origin, first: ast.expr, second: ast.expr
) -> None:
    """Follow `min(a, b)`: b if b < a, otherwise a, with NaN too."""
    kinds = walk.file.types(first) | walk.file.types(second)
    statement = walk.file.statement_of(call)
    simple = isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.Return)
    if len(kinds) != 1 or not all(map(walk.is_number, call.args)) or not simple:
        walk.stuck(node, "is compared by the host", origin)
        return
    names: dict[ast.expr, str] = {}
    sign = "<" if matched("min(...)", call) else ">"
    for argument in call.args:
        if not isinstance(argument, ast.Name | ast.Attribute | ast.Constant):
            names[argument] = _word_for(walk, statement, [*names.values()])
            walk.draft.put_before(statement, _first(names[argument], argument))
    walk.how.computed = True
    walk.as_tensor(origin, first, second)

    def where(render: Render) -> str:
        a, b = (names.get(x) or render(x) for x in (first, second))
        return f"torch.where({b} {sign} {a}, {b}, {a})"

    walk.write(call, where)
    walk.push(call, number(kinds), origin)


def _first(name: str, value: ast.expr) -> Template:
    return lambda render: f"{name} = {render(value)}"


def _word_for(walk: NumberWalk, statement: ast.stmt, taken: list[str]) -> str:
    """Return a name for an expression that is written twice, after its target."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    target = targets[0]
    word = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "value")
    return walk.file.fresh(f"{word}_now", *taken)


def _torch_function(walk: NumberWalk, call: ast.Call, node: ast.expr, taint: Taint, origin: Origin) -> bool:
    """Follow `x.pow(node)` and `torch.mul(x, node)`; return whether it is such a call."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _TAKES_TENSORS or call.keywords:
        return False
    of_module = isinstance(call.func.value, ast.Name) and call.func.value.id == "torch"
    operands = [a for a in ([] if of_module else [call.func.value]) + call.args if a is not node]
    if len(operands) != 1 or walk.file.device_tensor(operands[0]) is None:
        return False
    with_tensor(walk, node, operands[0], taint, origin)
    return True
