"""Notes on a file that nothing runs, as a run would make them: `syncscan lint`'s warnings and what the source shows.

Only a number that is surely a float is taken for one: of a loss, a mean or a norm by its name, and of what is computed
of constants and such numbers. Whatever else the source doesn't show stays unknown, and a rewrite leaves it.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator

from syncscan.fixing.messages import Entered, Observations, Observed, Tensor
from syncscan.fixing.program_file import File
from syncscan.fixing.source_text import Text

TURNS, SELDOM = 100, 5
"""Turns that a loop is taken to make, and those of them in which `if step % n` holds."""
_FLOATS = frozenset("mean norm std var cross_entropy mse_loss l1_loss nll_loss smooth_l1_loss kl_div logsumexp".split())
_NUMBERS = frozenset({"int", "float"})
_Types = dict[tuple[int, str], set[str]]


def observed(text: Text, waits: Container[tuple[int, int]]) -> Observed:
    """Return the notes that a run of a file may have made.

    Args:
        text: the file's.
        waits: line and column, both from 1, of each expression that lint warns of.
    """
    bare = File(text, Observed())
    numbers = {node: number for number, node in enumerate(bare.nodes)}
    sites = {node: _of(node) for node in bare.nodes if _is_warned(text, node, waits)}
    floats = {node: of for node, of in sites.items() if of is not None and _is_float(of)}
    types = _types(bare, floats)
    notes = Observed()
    for node, number in numbers.items():
        if isinstance(node, ast.For | ast.While):
            notes.entered[number] = Entered(1)
        elif isinstance(node, ast.expr):
            known = _type(bare, node, types, floats)
            seen = Observations(count=_count(bare, node), types=sorted(known - {"none"}))
            notes.seen[number] = seen
    for node, of in floats.items():
        notes.seen[numbers[node]].waits = notes.seen[numbers[node]].count
        kind = Tensor("float32", 0, on_device=True, pinned=False, grad=True, leaf=False)
        count = notes.seen[numbers[of]].count
        notes.seen[numbers[of]] = Observations(
            count=count, types=["torch.Tensor"], tensors=[kind], shortest=1, longest=1
        )
    return notes


def _is_warned(text: Text, node: ast.AST, waits: Container[tuple[int, int]]) -> bool:
    if not isinstance(node, ast.Call):
        return False
    column = text.offset(node.lineno, node.col_offset) - text.starts[node.lineno - 1] + 1
    return (node.lineno, column) in waits


def _of(node: ast.AST) -> ast.expr | None:
    """Return what `.item()` or `float(…)` reads a number of, without `detach()` and `cpu()`."""
    of: ast.expr | None = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item":
        of = node.func.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float" and node.args:
        of = node.args[0]
    while isinstance(of, ast.Call) and isinstance(of.func, ast.Attribute) and of.func.attr in ("detach", "cpu"):
        of = of.func.value
    return of.value if isinstance(of, ast.Attribute) and of.attr == "data" else of


def _is_float(of: ast.expr) -> bool:
    if isinstance(of, ast.Call):
        name = of.func.attr if isinstance(of.func, ast.Attribute) else getattr(of.func, "id", "")
        return name in _FLOATS and not any(k.arg in ("dim", "axis", "reduction") for k in of.keywords)
    name = of.attr if isinstance(of, ast.Attribute) else getattr(of, "id", "")
    return name.lower() == "loss" or name.lower().endswith("_loss") or name.lower().startswith("loss_")


def _types(file: File, floats: Container[ast.AST]) -> _Types:
    """Return the types that each name may have: of all that assigns it; unknown where that isn't plain."""
    types: _Types = defaultdict(set)
    for _ in range(4):  # what a name is given may be computed of others
        for node in file.nodes:
            for target, value in _assignments(node):
                if isinstance(target, ast.Name):
                    known = _type(file, value, types, floats) if value is not None else {"unknown"}
                    types[id(file.home_of(target)), target.id] |= known
    return types


def _assignments(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Yield each target of a statement and what it is given; None where that isn't written there."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                yield from zip(target.elts, node.value.elts, strict=False)
            else:
                yield from ((n, node.value if n is target else None) for n in ast.walk(target) if _is_store(n))  # type: ignore[misc]
    elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.NamedExpr):
        yield node.target, node.value
    elif isinstance(node, ast.For | ast.comprehension | ast.withitem):
        bound = node.optional_vars if isinstance(node, ast.withitem) else node.target
        yield from ((n, None) for n in (ast.walk(bound) if bound else ()) if _is_store(n))  # type: ignore[misc]


def _is_store(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _type(file: File, node: ast.expr, types: _Types, floats: Container[ast.AST]) -> set[str]:
    """Return the types that an expression may have, `unknown` among them where the source doesn't show one."""
    if node in floats:
        return {"float"}
    if isinstance(node, ast.Constant):
        return {"none"} if node.value is None else {type(node.value).__name__}
    if isinstance(node, ast.Name):
        return set(types.get((id(file.home_of(node)), node.id), ())) or {"unknown"}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("len", "int", "float"):
        return {"int" if node.func.id != "float" else "float"}
    if isinstance(node, ast.List | ast.Dict):
        return {"list" if isinstance(node, ast.List) else "dict"}
    if isinstance(node, ast.UnaryOp):
        return _type(file, node.operand, types, floats)
    if isinstance(node, ast.BinOp):
        return _types_of_operation(
            node.op, _type(file, node.left, types, floats), _type(file, node.right, types, floats)
        )
    return {"unknown"}


def _types_of_operation(op: ast.operator, left: Iterable[str], right: Iterable[str]) -> set[str]:
    both = set(left) | set(right)
    if not both <= _NUMBERS:
        return {"unknown"}
    return {"float"} if "float" in both or isinstance(op, ast.Div) else {"int"}


def _count(file: File, node: ast.expr) -> int:
    """Return how often an expression is taken to run."""
    if not file.loops_of(node):
        return 1
    conditions = (n.test for n in file.ancestors(node) if isinstance(n, ast.If))
    seldom = any(isinstance(n, ast.Mod) for test in conditions for n in ast.walk(test))
    return SELDOM if seldom else TURNS
