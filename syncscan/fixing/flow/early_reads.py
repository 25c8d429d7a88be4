"""Whether a read may run before the statement that it is a part of, and what its number is called there."""

from __future__ import annotations

import ast

from syncscan.fixing import questions
from syncscan.fixing.clock_reads import reads_clock
from syncscan.fixing.flow.number_reads import NumberRead
from syncscan.fixing.program_file import File

_SIMPLE = ast.Expr | ast.Return | ast.Assign | ast.AnnAssign | ast.AugAssign
_MAY_SKIP = (
    ast.Lambda,
    ast.IfExp,
    ast.BoolOp,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.NamedExpr,
    ast.Await,
    ast.Yield,
    ast.YieldFrom,
)
"""Expressions whose parts run in another order than they are written in, several times, or not at all."""
_HARMLESS = frozenset("len str int float round abs min max sum range format repr".split())
"""Functions of Python that change nothing."""
_HARMLESS_METHODS = frozenset("format join item tolist get_last_lr get_lr".split())


def may_go_first(file: File, site: NumberRead) -> bool:
    """Return whether a read may run right before its statement.

    What the statement computes before it then neither reads a clock nor writes to the tensor: only calls that are known
    to do neither may stand there.
    """
    return questions.is_pure(file, site.of) and not reads_clock(file, site.of) and stands_first(file, site.node)


def stands_first(file: File, node: ast.expr) -> bool:
    """Return whether an expression is certainly computed in its statement, and behind nothing but harmless calls."""
    statement = file.statement_of(node)
    around = [n for n in file.ancestors(node) if file.within(n, statement)]
    if not isinstance(statement, _SIMPLE) or any(isinstance(n, _MAY_SKIP) for n in around):
        return False
    begin, _ = file.text.span(node)
    calls = (n for n in ast.walk(statement) if isinstance(n, ast.Call) and n not in around and not file.within(n, node))
    return all(_is_harmless(file, call) for call in calls if file.text.span(call)[0] < begin)


def _is_harmless(file: File, call: ast.Call) -> bool:
    if isinstance(call.func, ast.Name):
        return call.func.id in _HARMLESS
    known = isinstance(call.func, ast.Attribute) and call.func.attr in _HARMLESS_METHODS
    return known or questions.is_pure(file, call)


def name_of_number(file: File, site: NumberRead, *taken: str) -> str:
    """Return a new name for the number that a read gives: `loss_value`, `output_mean`."""
    words: list[str] = []
    node: ast.AST = site.of
    while not words or isinstance(node, ast.Call):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and not node.func.attr.startswith("_"):
                words.insert(0, node.func.attr)
            node = node.func.value if isinstance(node.func, ast.Attribute) else node.func
        elif isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr == "data"):
            node = node.value
        else:
            break
    root = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    named = [root] if root and root not in ("torch", "F", "self") else []
    words = [*named, *words[-1:]]
    return file.fresh("_".join(words if len(words) > 1 else [*(words or ["number"]), "value"]), *taken)
