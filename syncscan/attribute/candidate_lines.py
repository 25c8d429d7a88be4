"""Find the lines of a function that can have called an op, in its source file."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence, Set

from syncscan.attribute.source_file import OWN, SourceFiles, functions_of
from syncscan.model.finding import Source
from syncscan.model.runtime_calls import is_synchronize

_SPELLINGS = {
    "item": ("item", "float", "int", "bool", "complex", "tolist", "range"),
    "local_scalar_dense": (),
    "is_nonzero": ("bool", "any", "all"),
    "nonzero": ("nonzero", "where", "argwhere"),
    "nonzero_numpy": ("nonzero", "where"),
    "to": ("to", "cpu", "cuda", "tensor", "as_tensor", "tolist", "numpy", "type", "print", "new_tensor"),
    "copy": ("copy_", "to", "cpu", "cuda", "tolist"),
    "lift_fresh": ("tensor",),
    "unique_dim": ("unique",),
}
"""Op → how Python code spells it, where that isn't the op's own name."""
_BRANCH = (ast.If, ast.While, ast.Assert, ast.IfExp)


def candidates(source: Source, ops: Sequence[str], api: str, files: SourceFiles = OWN) -> tuple[int, ...]:
    """Return the lines of a function that can have made a sync call: those that call the outermost op it calls at all.

    Empty if the file isn't available.

    Args:
        source: the function, with the line of its `def` as the profiler records it.
        ops: ops around the call, outermost first.
        api: the runtime call, used for a sync without an op (`torch.cuda.synchronize()`).
        files: source files that may be read.
    """
    tree = files.tree_of(source.file)
    function = _function(tree, source) if tree else None
    if function is None:
        return ()
    per_op = (sorted(set(_lines(function, op))) for op in ops or [api])
    return tuple(next((lines for lines in per_op if lines), ()))


def reads_on(function: ast.AST, line: int, ops: Sequence[str]) -> list[ast.expr]:
    """Return the calls and subscripts of a line that can be one of these ops, the outermost op's first."""
    nodes = [n for n in ast.walk(function) if isinstance(n, ast.Call | ast.Subscript) and _in_line(n, line)]
    return [node for op in ops for node in nodes if _can_be(node, _short(op), _spelled(op))]


def _in_line(node: ast.expr, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _function(tree: ast.Module, source: Source) -> ast.AST | None:
    """Return the function that starts, or whose first decorator stands, at this line, as the profiler records it."""
    for node in functions_of(tree):
        if node.name == source.function:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first <= source.line <= node.lineno:
                return node
    return None


def _lines(function: ast.AST, op: str) -> Iterator[int]:
    name, names = _short(op), _spelled(op)
    for node in ast.walk(function):
        if isinstance(node, ast.Call | ast.Subscript) and _can_be(node, name, names):
            yield node.lineno
        elif isinstance(node, _BRANCH) and name == "is_nonzero":
            yield node.test.lineno


def _short(op: str) -> str:
    return op.removeprefix("aten::").strip("_").rstrip("0123456789")


def _spelled(op: str) -> set[str]:
    """Return the names by which Python code calls an op or a synchronize call."""
    name = _short(op)
    return {*_SPELLINGS.get(name, (name, f"{name}_")), *(("synchronize",) if is_synchronize(op) else ())}


def _can_be(node: ast.Call | ast.Subscript, op: str, spellings: Set[str]) -> bool:
    return _called(node) in spellings if isinstance(node, ast.Call) else _subscripts(op, node)


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _subscripts(name: str, node: ast.Subscript) -> bool:
    """Return whether a subscript can be this op: `index` reads, `index_put` assigns."""
    if name == "index_put":
        return isinstance(node.ctx, ast.Store)
    return (
        name in ("index", "select", "slice")
        and isinstance(node.ctx, ast.Load)
        and not isinstance(node.slice, ast.Constant)
    )
