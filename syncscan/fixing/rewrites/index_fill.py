"""Writes `x[rows] = 0.5` as `x.index_fill_(0, rows, 0.5)`, which copies neither the number nor a list synchronously.

The index selects along one dimension; a list becomes a tensor that is copied without waiting. If several tensors form
the index, the number becomes a tensor that is filled on the device. A single element, `x[i, j] = 0.5`, is filled
through its view. `x` is changed in place, so views see the change.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import questions
from syncscan.fixing.edits import Draft
from syncscan.fixing.index_lists import index_list, moved
from syncscan.fixing.messages import Tensor
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "index-fill"
TITLE = "A number is assigned through an index"
RULES = ("scalar-assign", "cpu-index")
SAFETY = Safety.SAFE
BEFORE = "x[[0, 2]] = 0.5"
AFTER = "x.index_fill_(0, torch.tensor([0, 2]).to(x.device, non_blocking=True), 0.5)"


def find(file: File) -> Iterator[Proposal | Left]:
    """Yield the assignments of numbers through indices that wait."""
    for node in file.nodes:
        target = _target(node)
        if target is not None and file.seen(node).waits and questions.is_path(target.value):
            yield from _of(file, node, target)  # type: ignore[arg-type]


def _target(node: ast.AST) -> ast.Subscript | None:
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    if isinstance(node, ast.AugAssign):
        target = node.target
    return target if isinstance(target, ast.Subscript) else None


def _of(file: File, node: ast.Assign | ast.AugAssign, target: ast.Subscript) -> Iterator[Proposal]:
    tensor = file.device_tensor(target.value)
    if tensor is None:
        return
    draft: Draft | None = None
    if isinstance(node, ast.Assign):
        draft = (
            _fill_draft(file, node, target, tensor)
            or _element_draft(file, node, target, tensor)
            or _tensors(file, node, target, tensor)
        )
    draft = draft or _list_draft(file, node, target)
    if draft is not None:
        yield Proposal(
            node=node,
            draft=draft,
            rule="scalar-assign",
            rewrite=ID,
            change="fill on the device",
            waits=file.seen(node).waits,
        )


def _fill_draft(file: File, node: ast.Assign, target: ast.Subscript, tensor: Tensor) -> Draft | None:
    """Return the draft for one index in one dimension, with all others whole."""
    parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    picks = [k for k, part in enumerate(parts) if not _is_whole(part)]
    if len(picks) != 1 or not _takes(file, node.value, tensor):
        return None
    part = parts[picks[0]]
    index = file.device_tensor(part)
    if index is not None and (index.dims != 1 or index.dtype != "int64"):
        return None
    if index is None and not index_list(file, part):
        return None
    draft = Draft(file.text)
    source = file.text.code(part) if index is not None else moved(file, part, target.value)
    number = file.text.code(node.value)
    draft.replace(node, f"{file.text.code(target.value)}.index_fill_({picks[0]}, {source}, {number})")
    return draft


def _element_draft(file: File, node: ast.Assign, target: ast.Subscript, tensor: Tensor) -> Draft | None:
    """Return the draft for an index of whole numbers on the host that picks one element."""
    parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    if len(parts) != tensor.dims or not all(file.types(part) == {"int"} for part in parts):
        return None
    if not _takes(file, node.value, tensor):
        return None
    draft = Draft(file.text)
    draft.replace(node, f"{file.text.code(target)}.fill_({file.text.code(node.value)})")
    return draft


def _is_whole(node: ast.expr) -> bool:
    return isinstance(node, ast.Slice) and node.lower is None and node.upper is None and node.step is None


def _takes(file: File, value: ast.expr, tensor: Tensor) -> bool:
    """Return whether a fill with this number is what an assignment of it is: no fraction for whole numbers."""
    types = file.types(value)
    floating = tensor.dtype.startswith(("float", "bfloat"))
    return (types == {"int"} and tensor.dtype != "bool") or (types <= {"int", "float"} and bool(types) and floating)


def _tensors(file: File, node: ast.Assign, target: ast.Subscript, tensor: Tensor) -> Draft | None:
    """Return the draft for several index tensors: the number is made on the device."""
    parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    indices = [file.device_tensor(part) for part in parts if not isinstance(part, ast.Slice)]
    if not indices or any(i is None or i.dtype == "bool" for i in indices) or not file.is_number(node.value):
        return None
    if not _takes(file, node.value, tensor):
        return None
    draft, name = Draft(file.text), file.text.code(target.value)
    draft.replace(node.value, f"torch.full((), {file.text.code(node.value)}, dtype={name}.dtype, device={name}.device)")
    return draft


def _list_draft(file: File, node: ast.Assign | ast.AugAssign, target: ast.Subscript) -> Draft | None:
    """Return the draft for a list as index and a tensor as value, or any value that is added to what is there."""
    parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    lists = [part for part in parts if index_list(file, part)]
    if len(lists) != 1 or not (isinstance(node, ast.AugAssign) or file.device_tensor(node.value) is not None):
        return None
    if not all(part in lists or isinstance(part, ast.Slice) for part in parts):
        return None
    draft = Draft(file.text)
    draft.replace(lists[0], moved(file, lists[0], target.value))
    return draft
