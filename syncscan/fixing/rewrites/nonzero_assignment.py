"""Writes `x[nonzero(c, as_tuple=True)] = 0.0` as `x[c] = 0.0`, a fill that doesn't wait.

The indices stand in the assignment itself, or have names that are used only for such assignments, in their order. The
shape of the condition matches the first dimensions of `x`. A value on the device becomes a `torch.where`, in place.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import questions
from syncscan.fixing.edits import Draft
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "nonzero-assignment"
TITLE = "The indices of hits are only used to assign"
RULES = ("nonzero", "scalar-assign")
SAFETY = Safety.SAFE
BEFORE = "rows, columns = (x > 0.9).nonzero(as_tuple=True)\nx[rows, columns] = 0.0"
AFTER = "hits = x > 0.9\nx[hits] = 0.0"
_FIRST_COLUMN = ast.dump(ast.parse("x[:, 0]", mode="eval").body.slice)  # type: ignore[attr-defined]
_FLATTENS = {
    "squeeze": (["1"], ["-1"]),
    "flatten": ([],),
    "ravel": ([],),
    "view": (["-1"],),
    "reshape": (["-1"],),
}
"""Methods, with their arguments, that make one dimension of the result of `nonzero()` of a vector."""
COUNTED = "the number of matches is the size of a later tensor, which the host needs"


def find(file: File) -> Iterator[Proposal | Left]:
    """Yield the indices of hits that are only used to assign by."""
    for node in file.nodes:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        if file.seen(node.value).waits:
            condition = _condition(file, node.value, node.targets[0])
            if condition is not None:
                yield _of(file, node, condition)
        elif file.seen(node).waits and (condition := _condition_of_index(file, node.targets[0])) is not None:
            draft = Draft(file.text)
            if _write(file, draft, node, file.text.code(condition), condition):
                yield _proposal(file, node, draft, file.seen(node).waits)


def _condition_of_index(file: File, target: ast.expr) -> ast.expr | None:
    """Return `c` of `x[c.nonzero(as_tuple=True)]`, if it has no side effects."""
    if not isinstance(target, ast.Subscript):
        return None
    whole = _condition_of_nonzero(target.slice)
    first = _condition(file, target.slice, ast.Name("rows")) if whole is None else None
    condition = whole if whole is not None else first
    if condition is None or questions.mask_of(file, condition) is None:
        return None
    return condition if questions.is_pure(file, condition) else None


def _condition(file: File, value: ast.expr, target: ast.expr) -> ast.expr | None:
    """Return the mask whose hits are assigned to the target, one name per dimension."""
    several = isinstance(target, ast.Tuple)
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant) and value.slice.value == 0:
        inner = _condition_of_nonzero(value.value)
        mask = questions.mask_of(file, inner) if inner is not None else None
        return inner if mask is not None and mask.dims == 1 and isinstance(target, ast.Name) else None
    if (inner := _column(value)) is not None:
        mask = questions.mask_of(file, inner)
        return inner if mask is not None and mask.dims == 1 and isinstance(target, ast.Name) else None
    inner = _condition_of_nonzero(value)
    mask = questions.mask_of(file, inner) if inner is not None else None
    if mask is None:
        return None
    if several:
        names = target.elts  # type: ignore[attr-defined]
        return inner if len(names) == mask.dims and all(isinstance(n, ast.Name) for n in names) else None
    return inner if isinstance(target, ast.Name) else None


def _column(node: ast.expr) -> ast.expr | None:
    """Return `c` of the indices of hits in one dimension: `c.nonzero().squeeze(1)`, `torch.nonzero(c)[:, 0]`."""
    if isinstance(node, ast.Subscript):
        return _hits(node.value) if ast.dump(node.slice) == _FIRST_COLUMN else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.keywords:
        return None
    arguments = [ast.unparse(a) for a in node.args]
    return _hits(node.func.value) if arguments in _FLATTENS.get(node.func.attr, ()) else None


def _hits(node: ast.expr) -> ast.expr | None:
    """Return `c` of `c.nonzero()` and `torch.nonzero(c)`."""
    function = node.func if isinstance(node, ast.Call) and not node.keywords else None
    if not isinstance(node, ast.Call) or not isinstance(function, ast.Attribute) or function.attr != "nonzero":
        return None
    if questions.is_torch(function.value):
        return node.args[0] if len(node.args) == 1 else None
    return function.value if not node.args else None


def _condition_of_nonzero(node: ast.expr) -> ast.expr | None:
    """Return `c` of `c.nonzero(as_tuple=True)`, `torch.nonzero(c, as_tuple=True)` and `torch.where(c)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    of_torch = questions.is_torch(node.func.value)
    inner = node.args[0] if of_torch and len(node.args) == 1 else node.func.value if not node.args else None
    if node.func.attr == "where" and of_torch and not node.keywords:
        return inner
    tupled = [k.arg for k in node.keywords] == ["as_tuple"] and isinstance(node.keywords[0].value, ast.Constant)
    if node.func.attr == "nonzero" and tupled and node.keywords[0].value.value is True:  # type: ignore[attr-defined]
        return inner
    return None


def _of(file: File, node: ast.Assign, condition: ast.expr) -> Proposal | Left:
    target = node.targets[0]
    names = [n.id for n in (target.elts if isinstance(target, ast.Tuple) else [target]) if isinstance(n, ast.Name)]
    scope = file.home_of(target.elts[0] if isinstance(target, ast.Tuple) else target)  # type: ignore[arg-type]
    uses = [n for name in names for n in file.names(scope, name)]
    loads = [n for n in uses if isinstance(n.ctx, ast.Load)]
    if sum(not isinstance(n.ctx, ast.Load) for n in uses) != len(names):
        return Left(node, COUNTED)
    statements = {_assignment(file, n, names) for n in loads}
    if None in statements or not statements or any(not file.within(n, node) and n.lineno < node.lineno for n in loads):
        return Left(node, COUNTED)
    draft = Draft(file.text)
    mask = names[0] if isinstance(target, ast.Name) else file.fresh("hits")
    draft.replace(target, mask)
    draft.replace(node.value, file.text.code(condition))
    waits = file.seen(node.value).waits
    for statement in statements:
        assert statement is not None
        if not _write(file, draft, statement, mask, condition):
            return Left(node, COUNTED)
        waits += file.own_waits(statement)
    return _proposal(file, node, draft, waits, tuple(s for s in statements if s is not None))


def _proposal(file: File, node: ast.Assign, draft: Draft, waits: int, group: tuple[ast.stmt, ...] = ()) -> Proposal:
    return Proposal(
        node=node,
        draft=draft,
        rule="nonzero",
        rewrite=ID,
        change="assign through the mask, which doesn't need the number of hits",
        waits=waits,
        group=group,
    )


def _assignment(file: File, name: ast.Name, names: list[str]) -> ast.Assign | None:
    """Return the assignment whose index a use of the hits is."""
    parent = file.parents[name]
    index: ast.AST = name
    if isinstance(parent, ast.Tuple):
        index, parent = parent, file.parents[parent]
    if not isinstance(parent, ast.Subscript) or parent.slice is not index:
        return None
    written = [n.id for n in (index.elts if isinstance(index, ast.Tuple) else [index]) if isinstance(n, ast.Name)]
    statement = file.parents[parent]
    plain = isinstance(statement, ast.Assign) and statement.targets == [parent]
    return statement if plain and written == names else None  # type: ignore[return-value]


def _write(file: File, draft: Draft, statement: ast.Assign, mask: str, condition: ast.expr) -> bool:
    target = statement.targets[0]
    assert isinstance(target, ast.Subscript)
    tensor, hits = file.device_tensor(target.value), questions.mask_of(file, condition)
    shapes, masks = file.seen(target.value).shapes, file.seen(condition).shapes
    if tensor is None or hits is None or not questions.is_path(target.value):
        return False
    if not shapes or not all(any(shape[: len(m)] == m for m in masks) for shape in shapes):
        return False
    given = file.device_tensor(statement.value)
    if file.is_number(statement.value):
        draft.replace(target.slice, mask)
        return True
    if given is None or given.dims:
        return False
    name = file.text.code(target.value)
    where = questions.with_dims(mask, tensor.dims - hits.dims, mask.isidentifier())
    draft.replace(statement, f"{name}.copy_(torch.where({where}, {file.text.code(statement.value)}, {name}))")
    return True
