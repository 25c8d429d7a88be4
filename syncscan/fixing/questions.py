"""Questions about expressions that several rewrites ask."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

from syncscan.fixing.flow.number_reads import CASTS, FRESH, root_of, writes_to
from syncscan.fixing.messages import Tensor
from syncscan.fixing.program_file import File

_SIDE_EFFECTS = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)
_CHANGES = frozenset("backward step zero_grad append pop extend update train eval next read write".split())


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
    if not isinstance(function, ast.Attribute) or function.attr in _CHANGES or function.attr.endswith("_"):
        return False
    if "rand" in function.attr or function.attr in ("multinomial", "bernoulli", "normal", "dropout"):
        return False
    return is_torch(function.value) or bool(file.tensors(function.value))


def is_torch(node: ast.expr) -> bool:
    """Return whether an expression is `torch` or one of its modules, as they are usually called."""
    return isinstance(node, ast.Name) and node.id in ("torch", "F")


def names_in(node: ast.AST) -> Iterator[ast.Name]:
    """Yield the names that an expression reads."""
    yield from (n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def is_stored(file: File, name: ast.Name, within: ast.AST) -> bool:
    """Return whether a name is given another value inside of a node."""
    uses = file.names(file.home_of(name), name.id)
    return any(not isinstance(n.ctx, ast.Load) and file.within(n, within) for n in uses)


def targets(loop: ast.For) -> set[str]:
    """Return the names that a loop gives its values to."""
    return {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}


def is_written(file: File, name: str, within: ast.AST) -> bool:
    """Return whether a node holds something that writes into the tensor or list of this name."""
    return any(writes_to(n, name) or _is_changed(n, name) for n in ast.walk(within))


def _is_changed(node: ast.AST, name: str) -> bool:
    """Return whether a list or dictionary is changed: `x.append(y)`, `del x[0]`."""
    if isinstance(node, ast.Delete):
        return any((r := root_of(t)) is not None and r.id == name for t in node.targets)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        base = node.func.value
        changes = node.func.attr in "append extend insert pop remove clear sort reverse update setdefault".split()
        return changes and isinstance(base, ast.Name) and base.id == name
    return False


def has_second_name(file: File, name: ast.Name) -> bool:
    """Return whether the value of a name gets another name, or lies in a container."""
    holds = ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.Dict | ast.List | ast.Set | ast.Tuple
    uses = (n for n in file.names(file.home_of(name), name.id) if isinstance(n.ctx, ast.Load))
    return any(isinstance(file.parents[use], holds) for use in uses)


def running_in(file: File, loop: ast.AST) -> list[ast.AST]:
    """Return a loop and the functions of the file that ran in it or never ran."""
    functions = [n for n in file.nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [loop, *(f for f in functions if file.ran_inside(f, loop) or not file.entered(f).count)]


def is_attribute_written(node: ast.AST, attribute: str) -> bool:
    """Return whether a node writes to an attribute of this name, of whatever object."""
    for inner in ast.walk(node):
        target: ast.AST | None = None
        if isinstance(inner, ast.AugAssign):
            target = inner.target
        elif isinstance(inner, ast.Assign):
            target = next((t for t in inner.targets if _reaches(t, attribute)), None)
        elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr.endswith("_"):
            target = inner.func.value
        if target is not None and _reaches(target, attribute):
            return True
    return False


def _reaches(node: ast.AST, attribute: str) -> bool:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        if isinstance(node, ast.Attribute):
            if node.attr == attribute:
                return True
            node = node.value
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            node = node.func
    return False


def is_only_computed_with(file: File, node: ast.expr) -> bool:
    """Return whether new memory is computed of a tensor: nothing stores, returns or writes to it or a view of it."""
    parent = file.parents[node]
    if isinstance(parent, ast.BinOp | ast.Compare | ast.UnaryOp):
        return True
    if isinstance(parent, ast.List | ast.Tuple):
        return is_only_computed_with(file, parent)
    if isinstance(parent, ast.Subscript):
        return node is parent.slice or (isinstance(parent.ctx, ast.Load) and is_only_computed_with(file, parent))
    if isinstance(parent, ast.Attribute):
        return _only_reads(file, parent)
    if isinstance(parent, ast.keyword):
        call = file.parents[parent]
        return parent.arg not in (None, "out") and isinstance(call, ast.Call) and _only_takes(file, call)
    return isinstance(parent, ast.Call) and node in parent.args and _only_takes(file, parent)


def _only_reads(file: File, attribute: ast.Attribute) -> bool:
    """Return whether an attribute of a tensor is a property, or a method whose result is only computed with."""
    call = file.parents[attribute]
    if not isinstance(call, ast.Call) or call.func is not attribute:
        return attribute.attr in _PROPERTIES
    name = attribute.attr
    return not name.endswith("_") and (name in FRESH - CASTS or is_only_computed_with(file, call))


def _only_takes(file: File, call: ast.Call) -> bool:
    """Return whether a function of torch, or a method of a tensor, takes a tensor and computes with it."""
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr.endswith("_"):
        return False
    if not ast.unparse(function).startswith(("torch.", "F.", "nn.functional.")) and not file.tensors(function.value):
        return False
    return function.attr not in _ALIASES or is_only_computed_with(file, call)


_PROPERTIES = frozenset("shape dtype device ndim is_cuda requires_grad".split())
_ALIASES = frozenset(
    "as_tensor asarray reshape ravel squeeze unsqueeze flatten unflatten broadcast_to broadcast_tensors expand_as view "
    "view_as transpose permute movedim t real detach narrow select split chunk unbind as_strided swapaxes to "
    "from_numpy atleast_1d atleast_2d atleast_3d diagonal Parameter meshgrid cartesian_prod".split()
)
"""Functions of torch whose result may be a view of what they take."""


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


def is_simple(node: ast.AST) -> bool:
    """Return whether a method may be called on an expression's source without parentheses around it."""
    return isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call)


def same_source(file: File, one: ast.AST, other: ast.AST) -> bool:
    """Return whether two expressions are written alike."""
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
    home = file.home_of(name)
    uses = file.names(home, name.id)
    stores = [n for n in uses if not isinstance(n.ctx, ast.Load)]
    if home is not file.tree or len(stores) != 1 or is_written(file, name.id, file.tree):
        return False
    assign = file.parents[stores[0]]
    return isinstance(assign, ast.Assign) and constant(file, assign.value) and assign in file.tree.body


__all__ = [
    "constant",
    "has_second_name",
    "is_attribute_written",
    "is_constant_name",
    "is_only_computed_with",
    "is_path",
    "is_pure",
    "is_simple",
    "is_stored",
    "is_torch",
    "is_written",
    "mask_of",
    "names_in",
    "names_several_devices",
    "running_in",
    "same_source",
    "stands_alone",
    "targets",
    "with_dims",
]
