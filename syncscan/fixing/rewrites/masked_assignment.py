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
    """Yield the assignments through masks that wait."""
    for node in file.nodes:
        target = _target(node)
        if target is None or not isinstance(node, ast.Assign | ast.AugAssign) or not file.seen(node).waits:
            continue
        tensor, mask = file.device_tensor(target.value), questions.mask_of(file, target.slice)
        if tensor is None or mask is None or not questions.is_path(target.value):
            continue
        if not questions.is_pure(file, target.slice):
            continue
        source = value(file, node, target, tensor, mask)
        if source is None:
            yield Left(node, HITS)
            continue
        yield _proposal(file, node, target, source, tensor.dims - mask.dims)


def _target(node: ast.AST) -> ast.Subscript | None:
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    if isinstance(node, ast.AugAssign):
        target = node.target
    return target if isinstance(target, ast.Subscript) else None


def value(
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
    simple = isinstance(node.value, ast.Name | ast.Attribute | ast.Subscript | ast.Call | ast.Constant)
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


def _proposal(file: File, node: ast.Assign | ast.AugAssign, target: ast.Subscript, source: str, more: int) -> Proposal:
    draft = Draft(file.text)
    code = file.text.code
    mask = questions.with_dims(code(target.slice), more, questions.is_simple(target.slice))
    name = code(target.value)
    draft.replace(node, f"{name}.copy_(torch.where({mask}, {source}, {name}))")
    return Proposal(
        node=node,
        draft=draft,
        rule="boolean-assign",
        rewrite=ID,
        change="select with torch.where, which doesn't need the number of masked elements",
        waits=file.seen(node).waits,
    )
