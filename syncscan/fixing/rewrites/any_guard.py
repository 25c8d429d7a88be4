"""Removes `if mask.any():` around a masked fill, which changes nothing if no element is masked.

The body fills through that mask with a number: `x = x.masked_fill(mask, v)`, `x.masked_fill_(mask, v)` or
`x[mask] = v`; or it assigns to the masked elements what the mask selects, `x[mask] = y[mask]`, if `masked-assignment`
rewrites that too. There is no `else`. A name that is rebound isn't changed in place afterwards, since it would then be
a different tensor than before. If no element was masked in the run, the last use of the name before the guard
determines what is known about the tensor.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import SimpleNamespace

from syncscan.fixing import questions
from syncscan.fixing.edits import Draft
from syncscan.fixing.flow import memory
from syncscan.fixing.gathered import gathered
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety
from syncscan.source.code_pattern import matched

ID = "any-guard"
TITLE = "A masked fill is guarded by mask.any()"
RULES = ("tensor-bool", "nan-guard")
SAFETY = Safety.SAFE
BEFORE = "if mask.any():\n    x = x.masked_fill(mask, 0.5)"
AFTER = "x = x.masked_fill(mask, 0.5)"


def find(file: File) -> Iterator[Proposal | Left]:
    for node in file.nodes:
        if isinstance(node, ast.If) and not node.orelse and len(node.body) == 1:
            mask = _mask(file, node.test)
            if mask is not None and _does_nothing(file, node.body[0], mask):
                yield _proposal(file, node, node.body[0])


def _proposal(file: File, node: ast.If, body: ast.stmt) -> Proposal:
    draft = Draft(file.text)
    draft.replace(node, lambda render: render(body))
    change = "remove the guard: if no element is masked, the fill changes nothing"
    return Proposal(node=node.test, draft=draft, change=change, waits=file.seen(node.test).count)


def _mask(file: File, test: ast.expr) -> ast.expr | None:
    """Return `m` of `m.any()` and `torch.any(m)`, also read as a number or bool."""
    read = matched("$of.item() | bool($of) | int($of)", test)
    hits = matched("torch.any($mask) | $mask.any()", read.of if read else test)
    if hits is None or questions.mask_of(file, hits.mask) is None or not questions.is_pure(file, hits.mask):
        return None
    return hits.mask  # type: ignore[no-any-return]


def _does_nothing(file: File, statement: ast.stmt, mask: ast.expr) -> bool:
    """Return whether a statement changes nothing where the mask has no hit."""
    if item := matched("$x[$mask] = $value", statement):
        if not questions.same_source(file, item.mask, mask):
            return False
        # what else is assigned is selected by the mask: without hits nothing raises
        waited = file.seen(statement).waits and file.device_tensor(item.x) is not None
        fills = file.is_number(item.value) and _is_on_device(file, item.x)
        return fills or bool(waited and gathered(file, item.value, item.mask))
    value = getattr(statement, "value", None)
    fill = matched("$x.masked_fill($mask, $value) | $x.masked_fill_($mask, $value)", value)
    if not fill or not _fills(file, fill, mask):
        return False
    assign = matched("$name = $x.masked_fill($mask, $value)", statement)
    if assign is None:
        return isinstance(statement, ast.Expr)
    same = isinstance(assign.name, ast.Name) and questions.same_source(file, assign.x, assign.name)
    return same and _stays_whole(file, statement, assign.x, assign.name.id)


def _fills(file: File, fill: SimpleNamespace, mask: ast.expr) -> bool:
    number = isinstance(fill.value, ast.Constant) or file.is_number(fill.value)
    return number and questions.same_source(file, fill.mask, mask) and _is_on_device(file, fill.x)


def _is_on_device(file: File, node: ast.expr) -> bool:
    """Return whether a tensor lies on the device; if the run didn't get here, by the name's last use before."""
    if file.seen(node).count or not isinstance(node, ast.Name):
        return file.device_tensor(node) is not None
    begin = node.lineno, node.col_offset
    uses = [n for n in file.names(file.home_of(node), node.id) if (n.lineno, n.col_offset) < begin]
    last = max(uses, key=lambda n: (n.lineno, n.col_offset), default=None)
    return last is not None and isinstance(last.ctx, ast.Load) and file.device_tensor(last) is not None


def _stays_whole(file: File, statement: ast.stmt, filled: ast.expr, name: str) -> bool:
    """Return whether the tensor keeps its shape, and isn't written to under this name before the name is rebound."""
    value = statement.value  # type: ignore[attr-defined]
    return file.seen(value).shapes == file.seen(filled).shapes and not _is_written_later(file, statement, name)


def _is_written_later(file: File, statement: ast.stmt, name: str) -> bool:
    """Return whether something may write to a name's tensor behind a statement, before the name is bound anew."""
    uses = [n for n in ast.walk(file.function_of(statement)) if isinstance(n, ast.Name) and n.id == name]
    writes = [n for n in uses if memory.may_be_written(file, n, list(ast.walk(file.statement_of(n))))]
    if any(n.lineno > statement.lineno for n in writes):
        return True
    loops = file.loops_of(statement)
    if not loops:
        return False
    again = [n.lineno for n in writes if file.within(n, loops[-1])]
    bound = [n.lineno for n in loops[-1].body if n.lineno < statement.lineno and _binds(n, name)]
    return bool(again) and not (bound and bound[0] < min(again))


def _binds(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
