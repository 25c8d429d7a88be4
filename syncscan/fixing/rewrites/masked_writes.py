"""Assignments through a mask, written so that nothing needs the number of masked elements."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import SimpleNamespace

from syncscan.fixing import expressions
from syncscan.fixing.edits import Draft
from syncscan.fixing.flow import memory
from syncscan.fixing.messages import Tensor
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Answers, Left, Proposal, rewrite
from syncscan.fixing.rewrites.masked_sums import gathered
from syncscan.source.code_pattern import matched

_HITS = "torch.nonzero($mask, as_tuple=True) | torch.where($mask) | $mask.nonzero(as_tuple=True)"
_FIRST = "[:,0] .squeeze(1) .squeeze(-1) .flatten() .ravel() .view(-1) .reshape(-1)".split()
_ROWS = " | ".join(
    [f"{hits}[0]" for hits in _HITS.split(" | ")]
    + [f"{hits}{first}" for hits in ("torch.nonzero($mask)", "$mask.nonzero()") for first in _FIRST]
)
"""The hits of a mask of one dimension, as a tensor of one dimension."""
COUNTED = "the number of matches is the size of a later tensor, which the host needs"


@rewrite
def nonzero_assignment(file: File) -> Answers:
    for node in file.nodes:
        if not isinstance(node, ast.Assign) or not (assign := matched("$target = $value", node)):
            continue
        if file.seen(node.value).waits:
            names = assign.target.elts if isinstance(assign.target, ast.Tuple) else [assign.target]
            mask = _mask_of_hits(file, node.value, names, assign.target)
            if mask is not None:
                yield _of_hits(file, node, mask, names)  # type: ignore[arg-type]
        elif file.seen(node).waits and (item := matched("$x[$hits]", assign.target)):
            mask = _mask_of_hits(file, item.hits)
            draft = Draft(file.text)
            if mask is not None and expressions.is_pure(file, mask) and _assign_through(file, draft, node, mask):
                yield _through_mask(node, draft, file.seen(node).waits)


def _mask_of_hits(
    file: File, value: ast.expr, names: Sequence[ast.expr] = (), target: ast.expr | None = None
) -> ast.expr | None:
    """Return the mask whose hits a value is: for several names, one for each dimension."""
    rows = matched(_ROWS, value)
    hits = rows or matched(_HITS, value)
    mask = expressions.mask_of(file, hits.mask) if hits else None
    if hits is None or mask is None or not all(isinstance(name, ast.Name) for name in names):
        return None
    fits = len(names) == mask.dims and not rows if isinstance(target, ast.Tuple) else mask.dims == 1 or not rows
    return hits.mask if fits else None


def _of_hits(file: File, node: ast.Assign, mask: ast.expr, names: Sequence[ast.Name]) -> Proposal | Left:
    loads = [n for name in names for n in file.loads(name)]
    statements = {_assignment(file, n, [name.id for name in names]) for n in loads} or {None}
    early = any(not file.within(n, node) and n.lineno < node.lineno for n in loads)
    if None in statements or early or any(len(file.stores(name)) > 1 for name in names):
        return Left(node, COUNTED)
    hits = file.fresh("hits") if isinstance(node.targets[0], ast.Tuple) else names[0].id
    draft = Draft(file.text)
    draft.replace(node.targets[0], hits)
    draft.replace(node.value, file.text.code(mask))
    group = [statement for statement in statements if statement is not None]
    if not all(_assign_through(file, draft, statement, mask, hits) for statement in group):
        return Left(node, COUNTED)
    return _through_mask(node, draft, file.seen(node.value).waits + sum(map(file.own_waits, group)), group)


def _through_mask(node: ast.Assign, draft: Draft, waits: int, group: Sequence[ast.stmt] = ()) -> Proposal:
    change = "assign through the mask, which doesn't need the number of hits"
    return Proposal(node=node, draft=draft, change=change, waits=waits, group=tuple(group))


def _assignment(file: File, name: ast.Name, names: Sequence[str]) -> ast.Assign | None:
    """Return the assignment whose index a use of the hits is."""
    parent = file.parents[name]
    index, elements = (parent, parent.elts) if isinstance(parent, ast.Tuple) else (name, [name])
    statement = file.statement_of(name)
    item = matched("$x[$index] = $value", statement)
    alone = item is not None and item.index is index and [getattr(n, "id", "") for n in elements] == names
    return statement if alone else None  # type: ignore[return-value]


def _assign_through(file: File, draft: Draft, statement: ast.Assign, mask: ast.expr, hits: str = "") -> bool:
    """Have a statement assign through a mask, by the name that it gets if it gets one."""
    target = statement.targets[0]
    assert isinstance(target, ast.Subscript)
    tensor, kind = file.device_tensor(target.value), expressions.mask_of(file, mask)
    shapes, masks = file.seen(target.value).shapes, file.seen(mask).shapes
    if tensor is None or kind is None or not expressions.is_path(target.value):
        return False
    if not shapes or not all(any(shape[: len(m)] == m for m in masks) for shape in shapes):
        return False
    given, source = file.device_tensor(statement.value), hits or file.text.code(mask)
    if file.is_number(statement.value):
        draft.replace(target.slice, source)
        return True
    if given is None or given.dims:
        return False
    where = expressions.with_dims(source, tensor.dims - kind.dims, source.isidentifier())
    draft.replace(statement, expressions.assigned_where(file, target.value, where, file.text.code(statement.value)))
    return True


@rewrite
def any_guard(file: File) -> Answers:
    for node in file.nodes:
        if isinstance(node, ast.If) and not node.orelse and len(node.body) == 1:
            mask = _mask_of_any(file, node.test)
            if mask is not None and _does_nothing(file, node.body[0], mask):
                yield _without_guard(file, node, node.body[0])


def _without_guard(file: File, node: ast.If, body: ast.stmt) -> Proposal:
    draft = Draft(file.text)
    draft.replace(node, lambda render: render(body))
    change = "remove the guard: if no element is masked, the fill changes nothing"
    return Proposal(node=node.test, draft=draft, change=change, waits=file.seen(node.test).count)


def _mask_of_any(file: File, test: ast.expr) -> ast.expr | None:
    """Return `m` of `m.any()` and `torch.any(m)`, also read as a number or bool."""
    read = matched("$of.item() | bool($of) | int($of)", test)
    hits = matched("torch.any($mask) | $mask.any()", read.of if read else test)
    if hits is None or expressions.mask_of(file, hits.mask) is None or not expressions.is_pure(file, hits.mask):
        return None
    return hits.mask  # type: ignore[no-any-return]


def _does_nothing(file: File, statement: ast.stmt, mask: ast.expr) -> bool:
    """Return whether a statement changes nothing where the mask has no hit."""
    if item := matched("$x[$mask] = $value", statement):
        if not expressions.same_source(file, item.mask, mask):
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
    same = isinstance(assign.name, ast.Name) and expressions.same_source(file, assign.x, assign.name)
    return same and _stays_whole(file, statement, assign.x, assign.name.id)


def _fills(file: File, fill: SimpleNamespace, mask: ast.expr) -> bool:
    number = isinstance(fill.value, ast.Constant) or file.is_number(fill.value)
    return number and expressions.same_source(file, fill.mask, mask) and _is_on_device(file, fill.x)


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


_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
HITS = "the number of values depends on the number of matches, which only the device knows"


@rewrite
def masked_assignment(file: File) -> Answers:
    for node in file.nodes:
        match node:
            case ast.Assign(targets=[ast.Subscript() as target]) | ast.AugAssign(target=ast.Subscript() as target):
                if file.seen(node).waits:
                    yield from _of_assignment(file, node, target)


def _of_assignment(file: File, node: ast.Assign | ast.AugAssign, target: ast.Subscript) -> Answers:
    tensor, mask = file.device_tensor(target.value), expressions.mask_of(file, target.slice)
    if tensor is None or mask is None or not expressions.is_path(target.value):
        return
    if not expressions.is_pure(file, target.slice):
        return
    source = _value(file, node, target, tensor, mask)
    if source is None:
        yield Left(node, HITS)
        return
    draft, hits = Draft(file.text), file.text.code(target.slice)
    where = expressions.with_dims(hits, tensor.dims - mask.dims, expressions.is_simple(target.slice))
    draft.replace(node, expressions.assigned_where(file, target.value, where, source))
    change = "select with torch.where, which doesn't need the number of masked elements"
    yield Proposal(node=node, draft=draft, change=change, waits=file.seen(node).waits)


def _value(
    file: File, node: ast.Assign | ast.AugAssign, target: ast.Subscript, tensor: Tensor, mask: Tensor
) -> str | None:
    """Return what all elements would be given; None where that isn't known to be the same."""
    source = _whole(file, node.value, target, tensor, mask)
    if source is None or isinstance(node, ast.Assign):
        return source
    sign = _SIGNS.get(type(node.op))
    given = file.device_tensor(node.value)
    if sign is None or (isinstance(node.op, ast.Div) and given is not None):
        return None
    if isinstance(node.op, ast.Mult) and given is not None and (tensor.grad or given.grad):
        return None
    simple = expressions.is_simple(node.value) or isinstance(node.value, ast.Constant)
    return f"{file.text.code(target.value)} {sign} {source if simple else f'({source})'}"


def _whole(file: File, node: ast.expr, target: ast.Subscript, tensor: Tensor, mask: Tensor) -> str | None:
    given = file.device_tensor(node)
    if file.is_number(node) or (given is not None and given.dims == 0):
        return file.text.code(node)
    inner = gathered(file, node, target.slice)
    if inner is not None:
        same = all(file.seen(t).shapes == file.seen(target.value).shapes for t in inner.tensors)
        return inner.source if same else None
    if given is not None and given.dims <= tensor.dims - mask.dims:
        return file.text.code(node)
    return None
