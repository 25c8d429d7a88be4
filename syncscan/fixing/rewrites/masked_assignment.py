"""Writes `x[mask] = value` as `x.copy_(torch.where(mask, value, x))`, which doesn't need the number of masked elements.

Mask and value are on the device (a Python number becomes a fill, which doesn't wait). The value is one number, is
broadcast over the dimensions after the mask's, or is computed element by element from the masked elements; a value with
as many elements as are masked isn't changed. The assignment stays in place, so views, other names and the optimizer's
parameters see it as before.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import questions
from syncscan.fixing.edits import Draft
from syncscan.fixing.gathered import gathered
from syncscan.fixing.messages import Tensor
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "masked-assignment"
TITLE = "A boolean mask selects the elements to assign"
RULES = ("boolean-assign", "boolean-index")
SAFETY = Safety.SAFE
BEFORE = "x[mask] = y[mask]"
AFTER = "x.copy_(torch.where(mask, y, x))"
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
HITS = "the number of values depends on the number of matches, which only the device knows"


def find(file: File) -> Iterator[Proposal | Left]:
    for node in file.nodes:
        match node:
            case ast.Assign(targets=[ast.Subscript() as target]) | ast.AugAssign(target=ast.Subscript() as target):
                if file.seen(node).waits:
                    yield from _of(file, node, target)


def _of(file: File, node: ast.Assign | ast.AugAssign, target: ast.Subscript) -> Iterator[Proposal | Left]:
    tensor, mask = file.device_tensor(target.value), questions.mask_of(file, target.slice)
    if tensor is None or mask is None or not questions.is_path(target.value):
        return
    if not questions.is_pure(file, target.slice):
        return
    source = _value(file, node, target, tensor, mask)
    if source is None:
        yield Left(node, HITS)
        return
    draft, hits = Draft(file.text), file.text.code(target.slice)
    where = questions.with_dims(hits, tensor.dims - mask.dims, questions.is_simple(target.slice))
    draft.replace(node, questions.assigned_where(file, target.value, where, source))
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
    simple = questions.is_simple(node.value) or isinstance(node.value, ast.Constant)
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
