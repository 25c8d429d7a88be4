"""Writes `x[nonzero(c, as_tuple=True)] = 0.0` as `x[c] = 0.0`, a fill that doesn't wait.

The indices stand in the assignment itself, or have names that are used only for such assignments, in their order. The
shape of the condition matches the first dimensions of `x`. A value on the device becomes a `torch.where`, in place.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from syncscan.fixing import questions
from syncscan.fixing.edits import Draft
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety
from syncscan.source.code_pattern import matched

ID = "nonzero-assignment"
TITLE = "The indices of hits are only used to assign"
RULES = ("nonzero", "scalar-assign")
SAFETY = Safety.SAFE
BEFORE = "rows, columns = (x > 0.9).nonzero(as_tuple=True)\nx[rows, columns] = 0.0"
AFTER = "hits = x > 0.9\nx[hits] = 0.0"
_HITS = "torch.nonzero($mask, as_tuple=True) | torch.where($mask) | $mask.nonzero(as_tuple=True)"
_FIRST = "[:,0] .squeeze(1) .squeeze(-1) .flatten() .ravel() .view(-1) .reshape(-1)".split()
_ROWS = " | ".join(
    [f"{hits}[0]" for hits in _HITS.split(" | ")]
    + [f"{hits}{first}" for hits in ("torch.nonzero($mask)", "$mask.nonzero()") for first in _FIRST]
)
"""The hits of a mask of one dimension, as a tensor of one dimension."""
COUNTED = "the number of matches is the size of a later tensor, which the host needs"


def find(file: File) -> Iterator[Proposal | Left]:
    for node in file.nodes:
        if not isinstance(node, ast.Assign) or not (assign := matched("$target = $value", node)):
            continue
        if file.seen(node.value).waits:
            names = assign.target.elts if isinstance(assign.target, ast.Tuple) else [assign.target]
            mask = _mask(file, node.value, names, assign.target)
            if mask is not None:
                yield _of(file, node, mask, names)  # type: ignore[arg-type]
        elif file.seen(node).waits and (item := matched("$x[$hits]", assign.target)):
            mask = _mask(file, item.hits)
            draft = Draft(file.text)
            if mask is not None and questions.is_pure(file, mask) and _write(file, draft, node, mask):
                yield _proposal(node, draft, file.seen(node).waits)


def _mask(
    file: File, value: ast.expr, names: Sequence[ast.expr] = (), target: ast.expr | None = None
) -> ast.expr | None:
    """Return the mask whose hits a value is: for several names, one for each dimension."""
    rows = matched(_ROWS, value)
    hits = rows or matched(_HITS, value)
    mask = questions.mask_of(file, hits.mask) if hits else None
    if hits is None or mask is None or not all(isinstance(name, ast.Name) for name in names):
        return None
    fits = len(names) == mask.dims and not rows if isinstance(target, ast.Tuple) else mask.dims == 1 or not rows
    return hits.mask if fits else None


def _of(file: File, node: ast.Assign, mask: ast.expr, names: Sequence[ast.Name]) -> Proposal | Left:
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
    if not all(_write(file, draft, statement, mask, hits) for statement in group):
        return Left(node, COUNTED)
    return _proposal(node, draft, file.seen(node.value).waits + sum(map(file.own_waits, group)), group)


def _proposal(node: ast.Assign, draft: Draft, waits: int, group: Sequence[ast.stmt] = ()) -> Proposal:
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


def _write(file: File, draft: Draft, statement: ast.Assign, mask: ast.expr, hits: str = "") -> bool:
    """Have a statement assign through a mask, by the name that it gets if it gets one."""
    target = statement.targets[0]
    assert isinstance(target, ast.Subscript)
    tensor, kind = file.device_tensor(target.value), questions.mask_of(file, mask)
    shapes, masks = file.seen(target.value).shapes, file.seen(mask).shapes
    if tensor is None or kind is None or not questions.is_path(target.value):
        return False
    if not shapes or not all(any(shape[: len(m)] == m for m in masks) for shape in shapes):
        return False
    given, source = file.device_tensor(statement.value), hits or file.text.code(mask)
    if file.is_number(statement.value):
        draft.replace(target.slice, source)
        return True
    if given is None or given.dims:
        return False
    where = questions.with_dims(source, tensor.dims - kind.dims, source.isidentifier())
    draft.replace(statement, questions.assigned_where(file, target.value, where, file.text.code(statement.value)))
    return True
