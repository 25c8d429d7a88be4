"""Notes on a file that nothing runs, as a run would make them: `syncscan lint`'s warnings and what the source shows.

Only a number that is surely a float is taken for one: of a loss, a mean or a norm by its name, and of what is computed
of constants and such numbers. Whatever else the source doesn't show stays unknown, and a rewrite leaves it.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Container, Iterable

from syncscan.facts.code_pattern import matched
from syncscan.fixing.flow.number_reads import peeled
from syncscan.fixing.messages import Entered, Observations, Observed, Tensor
from syncscan.fixing.program_file import File
from syncscan.fixing.source_text import Text

TURNS, SELDOM = 100, 5
"""Turns that a loop is taken to make, and those of them in which `if step % n` holds."""
_FLOATS = frozenset("mean norm std var cross_entropy mse_loss l1_loss nll_loss smooth_l1_loss kl_div logsumexp".split())
_NUMBERS = frozenset({"int", "float"})
_Types = dict[tuple[int, str], set[str]]


def observed(text: Text, waits: Container[tuple[int, int]]) -> Observed:
    """Return the notes that a run of a file may have made; `waits` are lint's, by line and column, both from 1."""
    bare = File(text, Observed())
    numbers = {node: number for number, node in enumerate(bare.nodes)}
    warned = [node for node in bare.nodes if _is_warned(text, node, waits)]
    reads = {node: read for node in warned if (read := matched("$x.item() | float($x)", node))}
    sites = {node: peeled(read.x)[0] for node, read in reads.items()}
    floats = {node: of for node, of in sites.items() if _is_float(of)}
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


def _is_float(of: ast.expr) -> bool:
    if isinstance(of, ast.Call):
        name = of.func.attr if isinstance(of.func, ast.Attribute) else getattr(of.func, "id", "")
        return name in _FLOATS and not any(k.arg in ("dim", "axis", "reduction") for k in of.keywords)
    name = of.attr if isinstance(of, ast.Attribute) else getattr(of, "id", "")
    return name.lower() == "loss" or name.lower().endswith("_loss") or name.lower().startswith("loss_")


def _types(file: File, floats: Container[ast.AST]) -> _Types:
    """Return the types that each name may have: of all that assigns it; unknown where that isn't plain."""
    types: _Types = defaultdict(set)
    stores = [n for n in file.nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    for _ in range(4):  # what a name is given may be computed of others
        for store in stores:
            parent = file.parents[store]
            changes = isinstance(parent, ast.AugAssign | ast.NamedExpr)
            value = parent.value if changes else file.value_given(store)  # type: ignore[attr-defined]
            known = _type(file, value, types, floats) if value is not None else {"unknown"}
            types[id(file.home_of(store)), store.id] |= known
    return types


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
