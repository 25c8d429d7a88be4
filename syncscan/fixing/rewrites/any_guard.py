"""Removes `if mask.any():` around a masked fill, which changes nothing if no element is masked.

The body fills through that mask with a number: `x = x.masked_fill(mask, v)`, `x.masked_fill_(mask, v)` or
`x[mask] = v`; or it assigns to the masked elements what the mask selects, `x[mask] = y[mask]`, if `masked-assignment`
rewrites that too; or it selects with `x = torch.where(mask, v, x)`, where v is a number, a multiple of x, or needs no
gradient. There is no `else`. A name that is rebound isn't changed in place afterwards, since it would then be
a different tensor than before. If no element was masked in the run, the last use of the name before the guard
determines what is known about the tensor.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import questions
from syncscan.fixing.edits import Draft, Render
from syncscan.fixing.flow import memory
from syncscan.fixing.gathered import gathered
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "any-guard"
TITLE = "A masked fill is guarded by mask.any()"
RULES = ("tensor-bool", "nan-guard")
SAFETY = Safety.SAFE
_SOME = {(ast.Gt, 0), (ast.NotEq, 0), (ast.GtE, 1)}
"""Comparisons of a number of hits that say whether there are any."""
BEFORE = "if mask.any():\n    x = x.masked_fill(mask, 0.5)"
AFTER = "x = x.masked_fill(mask, 0.5)"


def find(file: File) -> Iterator[Proposal | Left]:
    """Yield the guards that can be left out."""
    for node in file.nodes:
        if isinstance(node, ast.If) and not node.orelse and len(node.body) == 1:
            mask = _mask(file, node.test)
            if mask is not None and _does_nothing(file, node.body[0], mask):
                yield _proposal(file, node)


def _mask(file: File, test: ast.expr) -> ast.expr | None:
    """Return `m` of `m.any()`, `torch.any(m)` and `m.sum() > 0`, also read as a number or bool."""
    test, method = _read(test), "any"
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.comparators[0], ast.Constant):
        if (type(test.ops[0]), test.comparators[0].value) not in _SOME:
            return None
        test, method = _read(test.left), "sum"
    if not isinstance(test, ast.Call) or not isinstance(test.func, ast.Attribute) or test.func.attr != method:
        return None
    mask = test.func.value
    if questions.is_torch(mask) and len(test.args) == 1:
        mask = test.args[0]
    elif test.args or test.keywords:
        return None
    return mask if questions.mask_of(file, mask) is not None and questions.is_pure(file, mask) else None


def _read(node: ast.expr) -> ast.expr:
    """Return `x` of `x.item()`, `bool(x)` and `int(x)`."""
    if not isinstance(node, ast.Call):
        return node
    if isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args:
        return node.func.value
    reads = isinstance(node.func, ast.Name) and node.func.id in ("bool", "int") and len(node.args) == 1
    return node.args[0] if reads else node


def _does_nothing(file: File, statement: ast.stmt, mask: ast.expr) -> bool:
    """Return whether a statement changes nothing where the mask has no hit."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        if isinstance(target, ast.Subscript):
            fills = file.is_number(statement.value) and _is_on_device(file, target.value)
            if fills and questions.same_source(file, target.slice, mask):
                return True
            return _assigns_hits(file, statement, target, mask)
        filled = _filled_tensor(file, statement.value, "masked_fill", mask)
        filled = filled or _selected_from(file, statement.value, mask)
        same = filled is not None and isinstance(target, ast.Name) and questions.same_source(file, filled, target)
        return same and _stays_whole(file, statement, target, filled)  # type: ignore[arg-type]
    if isinstance(statement, ast.AugAssign):
        return _assigns_hits(file, statement, statement.target, mask)
    if isinstance(statement, ast.Expr):
        return _filled_tensor(file, statement.value, "masked_fill_", mask) is not None
    return False


def _assigns_hits(file: File, statement: ast.Assign | ast.AugAssign, target: ast.expr, mask: ast.expr) -> bool:
    """Return whether only hits are assigned, from numbers and what the mask selects; without hits nothing raises."""
    if not isinstance(target, ast.Subscript) or not questions.same_source(file, target.slice, mask):
        return False
    if not file.seen(statement).waits or file.device_tensor(target.value) is None:
        return False
    return file.is_number(statement.value) or gathered(file, statement.value, target.slice) is not None


def _filled_tensor(file: File, node: ast.expr, method: str, mask: ast.expr) -> ast.expr | None:
    """Return the tensor that a call fills through the mask with a number."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != method:
        return None
    if len(node.args) != 2 or node.keywords or not questions.same_source(file, _without_new_dims(node.args[0]), mask):
        return None
    if not isinstance(node.args[1], ast.Constant) and not file.is_number(node.args[1]):
        return None
    return node.func.value if _is_on_device(file, node.func.value) else None


def _selected_from(file: File, node: ast.expr, mask: ast.expr) -> ast.expr | None:
    """Return `x` of `torch.where(mask, v, x)`, if v gets no gradient where nothing is masked."""
    called = node.func if isinstance(node, ast.Call) and not node.keywords else None
    if not isinstance(called, ast.Attribute) or called.attr != "where" or not questions.is_torch(called.value):
        return None
    assert isinstance(node, ast.Call)
    if len(node.args) != 3 or not questions.same_source(file, _without_new_dims(node.args[0]), mask):
        return None
    value, unmasked = node.args[1:]
    tensors = file.tensors(node)
    tensor = file.device_tensor(unmasked)
    if tensor is None or not tensors or any(t.dtype != tensor.dtype for t in tensors):
        return None
    without = not any(t.grad for t in file.tensors(value)) and questions.is_pure(file, value)
    return unmasked if file.is_number(value) or without or _is_multiple(file, value, unmasked) else None


def _is_multiple(file: File, value: ast.expr, of: ast.expr) -> bool:
    """Return whether a value is a tensor times a number."""
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Mult):
        return False
    sides = (value.left, value.right), (value.right, value.left)
    return any(questions.same_source(file, a, of) and file.is_number(b) for a, b in sides)


def _without_new_dims(mask: ast.expr) -> ast.expr:
    """Return `m` of `m[:, None]` and `m.unsqueeze(1)`, which have a hit where `m` has one."""
    if isinstance(mask, ast.Subscript):
        parts = mask.slice.elts if isinstance(mask.slice, ast.Tuple) else [mask.slice]
        adds = all(ast.unparse(part) in (":", "...", "None") for part in parts)
        return mask.value if adds else mask
    function = mask.func if isinstance(mask, ast.Call) else None
    if isinstance(function, ast.Attribute) and function.attr == "unsqueeze":
        return function.value
    return mask


def _is_on_device(file: File, node: ast.expr) -> bool:
    """Return whether a tensor lies on the device; if the run didn't get here, by the name's last use before."""
    if file.seen(node).count or not isinstance(node, ast.Name):
        return file.device_tensor(node) is not None
    begin = node.lineno, node.col_offset
    uses = [n for n in file.names(file.home_of(node), node.id) if (n.lineno, n.col_offset) < begin]
    last = max(uses, key=lambda n: (n.lineno, n.col_offset), default=None)
    return last is not None and isinstance(last.ctx, ast.Load) and file.device_tensor(last) is not None


def _stays_whole(file: File, statement: ast.Assign, target: ast.Name, filled: ast.expr) -> bool:
    """Return whether the tensor keeps its shape, and isn't written to under this name before the name is rebound."""
    shapes = file.seen(statement.value).shapes
    before = file.seen(filled).shapes
    return shapes == before and not _is_written_later(file, statement, target.id)


def _is_written_later(file: File, statement: ast.stmt, name: str) -> bool:
    """Return whether something may write to a name's tensor behind a statement, before the name is bound anew."""
    uses = [n for n in ast.walk(file.function_of(statement)) if isinstance(n, ast.Name) and n.id == name]
    writes = [n for n in uses if memory.may_be_written(file, n, list(ast.walk(file.statement_of(n))))]
    if any(n.lineno > statement.lineno for n in writes):
        return True
    loops = file.loops_of(statement)
    if not loops:
        return False
    again = [n for n in writes if file.within(n, loops[-1])]
    bound = [n for n in loops[-1].body if isinstance(n, ast.Assign) and _binds(n, name) and n.lineno < statement.lineno]
    return bool(again) and not (bound and bound[0].lineno < min(n.lineno for n in again))


def _binds(node: ast.Assign, name: str) -> bool:
    return any(isinstance(t, ast.Name) and t.id == name for t in node.targets)


def _proposal(file: File, node: ast.If) -> Proposal:
    draft = Draft(file.text)
    body = node.body[0]

    def alone(render: Render) -> str:
        return render(body)

    draft.replace(node, alone)
    return Proposal(
        node=node.test,
        draft=draft,
        rule="tensor-bool",
        rewrite=ID,
        change="remove the guard: if no element is masked, the fill changes nothing",
        waits=_waits(file, node),
    )


def _waits(file: File, node: ast.If) -> int:
    """Return the waits of the test, which happen when `if` evaluates it."""
    return file.seen(node.test).count
