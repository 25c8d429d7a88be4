"""Assignments through a mask, written so that nothing needs the number of masked elements."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from syncscan.fixing import expressions
from syncscan.fixing.edits import Draft, Line, template
from syncscan.fixing.flow import tensor_writes
from syncscan.fixing.messages import Tensor
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Answers, Left, Proposal, rewrite
from syncscan.fixing.rewrites.masked_sums import gathered
from syncscan.source.code_pattern import filled, key, matched

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
        assign = matched("$target = $value", node)
        if assign and file.seen(assign.value).waits:
            names = assign.target.elts if isinstance(assign.target, ast.Tuple) else [assign.target]
            mask = _mask_of_hits(file, assign.value, names, assign.target)
            if mask is not None:
                yield _of_hits(file, node, mask, names)  # type: ignore[arg-type]
        elif file.seen(node).waits and (item := matched("$x[$hits] = $value", node)):
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
    statements = {_assignment(file, n, [name.id for name in names]) for n in loads}
    early = any(not file.within(n, node) and n.lineno < node.lineno for n in loads)
    hits, draft = file.fresh("hits") if isinstance(node.targets[0], ast.Tuple) else names[0].id, Draft(file.text)
    draft.replace(node.targets[0], hits)
    draft.replace(node.value, file.text.code(mask))
    group = [statement for statement in statements if statement and _assign_through(file, draft, statement, mask, hits)]
    if early or not group or len(group) < len(statements) or any(len(file.stores(name)) > 1 for name in names):
        return Left(node, COUNTED)
    return _through_mask(node, draft, file.seen(node.value).waits + sum(map(file.own_waits, group)), group)


def _through_mask(node: ast.AST, draft: Draft, waits: int, group: Sequence[ast.stmt] = ()) -> Proposal:
    change = "assign through the mask, which doesn't need the number of hits"
    return Proposal(node=node, draft=draft, change=change, waits=waits, group=tuple(group))


def _assignment(file: File, name: ast.Name, names: Sequence[str]) -> ast.stmt | None:
    """Return the assignment whose index a use of the hits is."""
    parent, statement = file.parents[name], file.statement_of(name)
    index, elements = (parent, parent.elts) if isinstance(parent, ast.Tuple) else (name, [name])
    item = matched("$x[$index] = $value", statement)
    alone = item is not None and item.index is index and [getattr(n, "id", "") for n in elements] == names
    return statement if alone else None


def _assign_through(file: File, draft: Draft, statement: ast.AST, mask: ast.expr, hits: str = "") -> bool:
    """Have a statement assign through a mask, by the name that it gets if it gets one."""
    item = matched("$x[$index] = $value", statement)
    assert item is not None
    tensor, kind, given = file.device_tensor(item.x), expressions.mask_of(file, mask), file.device_tensor(item.value)
    if tensor is None or kind is None or not key(item.x):
        return False
    source, is_number = hits or file.text.code(mask), file.is_number(item.value)
    if not expressions.begin_with(file.seen(item.x).shapes, file.seen(mask).shapes):
        return False
    if is_number:
        draft.replace(item.index, source)
    elif given is not None and not given.dims:
        more = tensor.dims - kind.dims
        draft.replace(statement, _where(file, item.x, source, more, file.text.code(item.value)))
    return is_number or (given is not None and not given.dims)


def _where(file: File, x: ast.expr, mask: str, more: int, value: str) -> Line:
    """Return the code that gives a tensor's masked elements a value, in place; the mask lacks some dimensions."""
    where, code = expressions.with_dims(mask, more), "$x.copy_(torch.where($where, $value, $x))"
    return template(code, x=file.text.code(x), where=where, value=value)


_READ = "$hits.item() | bool($hits) | int($hits)"
_FILL = "$x.masked_fill($mask, $value) | $x.masked_fill_($mask, $value)"


@rewrite
def any_guard(file: File) -> Answers:
    for node in file.nodes:
        if isinstance(node, ast.If) and not node.orelse and len(node.body) == 1:
            read = matched(_READ, node.test)
            hits = matched("torch.any($mask) | $mask.any()", read.hits if read else node.test)
            if hits and _does_nothing(file, node.body[0], hits.mask):
                draft = Draft(file.text)
                draft.replace(node, template("$fill", fill=node.body[0]))
                change = "remove the guard: if no element is masked, the fill changes nothing"
                yield Proposal(node=node.test, draft=draft, change=change, waits=file.seen(node.test).count)


def _does_nothing(file: File, statement: ast.stmt, mask: ast.expr) -> bool:
    """Return whether a statement changes nothing where the mask has no hit."""
    if expressions.mask_of(file, mask) is None or not expressions.is_pure(file, mask):
        return False
    item = matched("$x[$mask] = $value", statement)
    fill = item or matched(_FILL, getattr(statement, "value", None))
    if not fill or not expressions.same_source(file, fill.mask, mask):
        return False
    fills = (isinstance(fill.value, ast.Constant) or file.is_number(fill.value)) and _is_on_device(file, fill.x)
    if item:
        # what else is assigned is selected by the mask: without hits nothing raises
        waited = file.seen(statement).waits and file.device_tensor(item.x) is not None
        return fills or bool(waited and gathered(file, item.value, item.mask))
    assign = matched("$x = $x.masked_fill($mask, $value)", statement)
    rebinds = bool(assign and isinstance(assign.x, ast.Name) and _stays_whole(file, statement, assign.x, fill.x))
    return fills and (rebinds or isinstance(statement, ast.Expr))


def _is_on_device(file: File, node: ast.expr) -> bool:
    """Return whether a tensor lies on the device; if the run didn't get here, by the name's last use before."""
    if file.seen(node).count or not isinstance(node, ast.Name):
        return file.device_tensor(node) is not None
    uses = [n for n in file.names(file.home_of(node), node.id) if file.text.span(n) < file.text.span(node)]
    last = max(uses, key=file.text.span, default=None)
    return last is not None and isinstance(last.ctx, ast.Load) and file.device_tensor(last) is not None


def _stays_whole(file: File, statement: ast.stmt, name: ast.Name, filled: ast.expr) -> bool:
    """Return whether a filled tensor keeps its shape, and isn't written to later before its name is bound anew."""
    value, loops = statement.value, file.loops_of(statement)  # type: ignore[attr-defined]
    body = loops[-1].body if loops else []
    bound = [n.lineno for n in body if (given := matched("$x = $value", n)) and getattr(given.x, "id", "") == name.id]
    uses = [n for n in ast.walk(file.function_of(statement)) if isinstance(n, ast.Name) and n.id == name.id]
    again = min([*bound, statement.lineno]) if loops else 0
    later = [
        n for n in uses if n.lineno > statement.lineno or any(file.within(n, s) and s.lineno < again for s in body)
    ]
    same = file.seen(value).shapes == file.seen(filled).shapes
    spreads = (tensor_writes.spread_of(file, n, list(ast.walk(file.statement_of(n)))) for n in later)
    return same and not any(spread.may_be_written for spread in spreads)


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
    if tensor is None or mask is None or not key(target.value):
        return
    if not expressions.is_pure(file, target.slice):
        return
    more = tensor.dims - mask.dims
    source = _value(file, node, target, tensor, more)
    if source is None:
        yield Left(node, HITS)
        return
    draft = Draft(file.text)
    draft.replace(node, _where(file, target.value, file.text.code(target.slice), more, source))
    change = "select with torch.where, which doesn't need the number of masked elements"
    yield Proposal(node=node, draft=draft, change=change, waits=file.seen(node).waits)


def _value(
    file: File, node: ast.Assign | ast.AugAssign, target: ast.Subscript, tensor: Tensor, more: int
) -> str | None:
    """Return what all elements would be given; None where that isn't known to be the same."""
    source, given = _whole(file, node.value, target, more), file.device_tensor(node.value)
    if source is None or isinstance(node, ast.Assign):
        return source
    sign = expressions.SIGNS.get(type(node.op), "**")
    if sign == "**" or (sign == "/" and given is not None):
        return None
    if sign == "*" and given is not None and (tensor.grad or given.grad):
        return None
    return filled(f"$x {sign} $value", x=file.text.code(target.value), value=source)


def _whole(file: File, node: ast.expr, target: ast.Subscript, more: int) -> str | None:
    """Return a value's source without the mask: of a number, of what one selects, of what is broadcast behind it."""
    given, inner = file.device_tensor(node), gathered(file, node, target.slice)
    if file.is_number(node) or (given is not None and given.dims == 0):
        return file.text.code(node)
    if inner is not None:
        same = all(file.seen(t).shapes == file.seen(target.value).shapes for t in inner.tensors)
        return inner.source if same else None
    return file.text.code(node) if given is not None and given.dims <= more else None
