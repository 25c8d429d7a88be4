"""Reads that are moved: whether one may run before its statement, how its number is called there, several as one."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from syncscan.fixing import expressions
from syncscan.fixing.clock_reads import reads_clock
from syncscan.fixing.edits import Render
from syncscan.fixing.flow.number_reads import NumberRead, is_data, primary
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
    return expressions.is_pure(file, site.of) and not reads_clock(file, site.of) and stands_first(file, site.node)


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
    return known or expressions.is_pure(file, call)


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


def stacked(
    file: File,
    statement: ast.stmt,
    names: Sequence[str],
    reads: Sequence[NumberRead],
    render: Render,
    *,
    in_front: bool = False,
) -> str:
    """Return the source that reads numbers at once, and assigns them to names if there are any.

    It takes the statement's place; `in_front` of it, its lines get the statement's indentation.
    """
    values = [
        f"{primary(site.of, render)}.detach()" if site.detached and not is_data(site.of) else render(site.of)
        for site in reads
    ]
    indent = file.text.indent(statement)
    start = f"{', '.join(names)} = " if names else ""
    line = f"{start}torch.stack([{', '.join(values)}]).tolist()"
    if len(indent) + len(line) <= file.text.width:
        return line
    rows = [f"{start}torch.stack([", *(f"    {value}," for value in values), "]).tolist()"]
    return ("\n" if in_front else f"{file.text.line_end}{indent}").join(rows)


def on_the_device(file: File, node: ast.expr) -> bool:
    """Return whether an expression lies on the device also on paths that the run didn't take.

    All that its function assigns to a name that it is computed of was on the device, or a number.
    """
    for name in expressions.names_in(node):
        for store in file.stores(name):
            assign = file.parents[store]
            if not isinstance(assign, ast.Assign) or store not in assign.targets:
                continue
            ran = bool(file.seen(assign.value).count) or expressions.constant(file, assign.value)
            if not ran or any(not tensor.on_device for tensor in file.tensors(assign.value)):
                return False
    return True
