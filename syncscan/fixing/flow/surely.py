"""Finds out whether a deferred value surely is a tensor where it is used: a loop that makes it one may have no turn."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from syncscan.facts.code_pattern import matched
from syncscan.fixing.flow import callees
from syncscan.fixing.flow.taint import Attribute, Cell, Local

if TYPE_CHECKING:
    from syncscan.fixing.flow.number_walk import NumberWalk


def is_tensor(walk: NumberWalk, node: ast.expr) -> bool:
    """Return whether an expression is a tensor in the changed program, whatever path led to it."""
    if node in walk.reads:
        return node in walk.tainted
    if isinstance(node, ast.BinOp):
        return bool(matched("sum($x) / len($x)", node)) or is_tensor(walk, node.left) or is_tensor(walk, node.right)
    if isinstance(node, ast.UnaryOp):
        return is_tensor(walk, node.operand)
    if isinstance(node, ast.Compare):
        return any(is_tensor(walk, side) for side in (node.left, *node.comparators))
    if isinstance(node, ast.Call):
        return node in walk.tainted and not matched("sum(...)", node) and _gives_it(walk, node)
    if not isinstance(node, ast.Name | ast.Attribute) or node not in walk.tainted:
        return False
    cell = walk.cell(node)
    return cell is not None and (_is_parameter(walk, cell) or _is_given(walk, cell, node))


def _gives_it(walk: NumberWalk, call: ast.Call) -> bool:
    """Return whether a call certainly gives a tensor: a function of the file always, any other for one of a tensor."""
    function = callees.callee(walk.file, call)
    if function is None:
        return any(is_tensor(walk, argument) for argument in call.args)
    returned = [n for n in ast.walk(function) if isinstance(n, ast.Return) and walk.file.function_of(n) is function]
    ends = isinstance(function.body[-1], ast.Return)
    return ends and all(n.value is not None and is_tensor(walk, n.value) for n in returned)


def _is_parameter(walk: NumberWalk, cell: Cell) -> bool:
    """Return whether a cell is a parameter that all calls give a deferred number, which is checked elsewhere."""
    given = isinstance(cell, Local) and any((cell.scope, cell.name) == known for known in walk.parameters)
    return given and not any(True for _ in walk.stores(cell))


def _is_given(walk: NumberWalk, cell: Cell, node: ast.expr) -> bool:
    """Return whether each way to a use leads through an assignment of a tensor behind the last one of a number."""
    file = walk.file
    inner: ast.AST = file.statement_of(node)
    while isinstance(inner, ast.stmt) and not isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
        block = file.block_of(inner)
        for statement in reversed(block[: block.index(inner)]):
            gives = [_gives_tensor(walk, cell, n) for n in ast.walk(statement) if _assigns(walk, cell, n)]
            if gives and not hasattr(statement, "body"):
                return all(gives)
            if not all(gives):
                return False
        inner = file.parents[inner]
    return False


def _assigns(walk: NumberWalk, cell: Cell, node: ast.AST) -> bool:
    if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Store):
        return False
    same = node.id == cell.name if isinstance(node, ast.Name) else node.attr == cell.name
    return same and isinstance(node, ast.Attribute) == isinstance(cell, Attribute) and walk.cell(node) == cell


def _gives_tensor(walk: NumberWalk, cell: Cell, target: ast.AST) -> bool:
    statement = walk.file.parents[target]
    value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign) else None
    return value is not None and is_tensor(walk, value)
