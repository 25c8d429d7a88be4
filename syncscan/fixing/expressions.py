"""Questions about expressions that several rewrites ask."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

from syncscan.fixing.flow import known_functions, memory
from syncscan.fixing.messages import Tensor
from syncscan.fixing.program_file import File

_SIDE_EFFECTS = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)


def names_several_devices(file: File) -> bool:
    """Return whether a file names more than one GPU, so that its tensors may lie on different ones."""
    return len(set(re.findall(r"[\"']cuda:\d+[\"']", file.text.text))) > 1


def is_path(node: ast.AST) -> bool:
    """Return whether an expression only names something: `a`, `a.b`, `a[0]`."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and is_path(node.value)
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and is_path(node.value))


def is_pure(file: File, node: ast.AST) -> bool:
    """Return whether an expression has no side effects: it only calls methods of tensors and torch."""
    for inner in ast.walk(node):
        if isinstance(inner, _SIDE_EFFECTS) or (isinstance(inner, ast.Call) and not _is_pure_call(file, inner)):
            return False
    return True


def _is_pure_call(file: File, call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Name):
        return function.id in ("len", "int", "float", "abs", "range") and hasattr(builtins, function.id)
    if not isinstance(function, ast.Attribute) or function.attr not in known_functions.PURE:
        return False
    return is_torch(function.value) or bool(file.tensors(function.value))


def is_torch(node: ast.expr) -> bool:
    """Return whether an expression is `torch` or one of its modules, as they are usually called."""
    return isinstance(node, ast.Name) and node.id in ("torch", "F", "th")


def names_in(node: ast.AST) -> Iterator[ast.Name]:
    """Yield the names that an expression reads."""
    yield from (n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def targets(loop: ast.For) -> set[str]:
    """Return the names that a loop gives its values to."""
    return {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}


def mask_of(file: File, node: ast.expr) -> Tensor | None:
    """Return the kind of tensor of an index that is a mask on the device."""
    if isinstance(node, ast.Tuple | ast.Slice | ast.Constant):
        return None
    tensor = file.device_tensor(node)
    return tensor if tensor is not None and tensor.dtype == "bool" and tensor.dims else None


def with_dims(source: str, more: int, simple: bool) -> str:
    """Return the source of a mask that is to be broadcast over further dimensions behind its own."""
    if not more:
        return source
    return f"{source if simple else f'({source})'}[..., {', '.join(['None'] * more)}]"


def assigned_where(file: File, x: ast.expr, mask: str, value: str) -> str:
    """Return the source that assigns a value to the masked elements of a tensor, in place."""
    name = file.text.code(x)
    return f"{name}.copy_(torch.where({mask}, {value}, {name}))"


def quotient(file: File, node: ast.expr, above: str, below: str) -> str:
    """Return a fraction in the place of a node, in parentheses where the context binds tighter."""
    closer = ast.BinOp | ast.UnaryOp | ast.Attribute | ast.Subscript | ast.Compare
    return f"({above} / {below})" if isinstance(file.parents[node], closer) else f"{above} / {below}"


def count_of(file: File, x: ast.expr, mask: str, more: int) -> str:
    """Return the source of the number of elements that a mask selects from a tensor with further dimensions."""
    return f"{with_dims(mask, more, True)}.expand_as({file.text.code(x)}).sum()" if more else f"{mask}.sum()"


def with_guard(file: File, statement: ast.stmt) -> ast.stmt:
    """Return a statement, or the `if` that holds it alone and only asks whether there is a GPU."""
    parent = file.parents[statement]
    alone = isinstance(parent, ast.If) and parent.body == [statement] and not parent.orelse
    return parent if alone and asks_for_gpu(parent.test) else statement  # type: ignore[attr-defined, return-value]


def asks_for_gpu(test: ast.expr) -> bool:
    """Return whether a condition calls nothing but `torch.cuda.is_available()`."""
    calls = [n for n in ast.walk(test) if isinstance(n, ast.Call)]
    return all(ast.unparse(call.func) == "torch.cuda.is_available" for call in calls)


def is_simple(node: ast.AST) -> bool:
    """Return whether a method may be called on an expression's source without parentheses around it."""
    return isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call)


def same_source(file: File, one: ast.AST, other: ast.AST) -> bool:
    return ast.dump(one) == ast.dump(other) or file.text.code(one) == file.text.code(other)


def stands_alone(file: File, statement: ast.stmt) -> bool:
    """Return whether nothing but comments shares the lines of a statement."""
    text = file.text
    begin, end = text.span(statement)
    before = text.text[text.starts[statement.lineno - 1] : begin]
    after = text.lines[(statement.end_lineno or statement.lineno) - 1]
    rest = after.encode()[statement.end_col_offset or 0 :].decode().strip()
    alone = not before.strip() and (not rest or rest.startswith("#"))
    return alone and end > begin


def constant(file: File, node: ast.expr) -> bool:
    """Return whether an expression has the same value whenever it runs: literals, and the module's names for such."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.List | ast.Tuple):
        return all(constant(file, e) for e in node.elts)
    if isinstance(node, ast.UnaryOp):
        return constant(file, node.operand)
    if isinstance(node, ast.BinOp):
        return constant(file, node.left) and constant(file, node.right)
    return isinstance(node, ast.Name) and is_constant_name(file, node)


def is_constant_name(file: File, name: ast.Name) -> bool:
    """Return whether a module's name is given a literal once, and never changed."""
    value = file.only_value(name)
    if file.home_of(name) is not file.tree or value is None or not constant(file, value):
        return False
    if file.statement_of(value) not in file.tree.body:
        return False
    holds_list = any(isinstance(n, ast.List) for n in ast.walk(value))
    return not holds_list or not memory.may_be_written(file, name, file.nodes)
