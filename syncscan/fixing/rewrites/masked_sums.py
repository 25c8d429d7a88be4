"""Sums, means and losses of masked elements, computed over all elements."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import expressions
from syncscan.fixing.edits import Draft
from syncscan.fixing.masked_expressions import Gathered, gathered, named_mask
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Answers, Proposal, rewrite
from syncscan.source.code_pattern import matched

_REDUCTIONS = "torch.$name($x) | $x.$name() | $x.$name($dim) | $x.$name(dim=$dim)"
_EXACT = frozenset("float32 float64 int64 int32 bool".split())


@rewrite
def masked_reduction(file: File) -> Answers:
    for node in file.nodes:
        if isinstance(node, ast.Call) and file.seen(node).waits:
            yield from _of_reduction(file, node)


def _of_reduction(file: File, call: ast.Call) -> Iterator[Proposal]:
    reduction = matched(_REDUCTIONS, call)
    if not reduction or reduction.name not in ("sum", "mean"):
        return
    dim = getattr(reduction, "dim", None)
    picked = gathered(file, reduction.x)
    if (dim is not None and not matched("0", dim)) or picked is None or not _is_precise(file, picked):
        return
    draft = _draft(file, call, reduction.name, picked, "" if dim is None else "0")
    if draft is not None:
        change = f"compute the {reduction.name} over all elements with torch.where"
        yield Proposal(node=call, draft=draft, change=change, waits=file.seen(call).waits)


def _is_precise(file: File, picked: Gathered) -> bool:
    return all((t := file.device_tensor(x)) is not None and t.dtype in _EXACT for x in picked.tensors)


def _draft(file: File, call: ast.Call, name: str, picked: Gathered, dim: str) -> Draft | None:
    """Return the draft for a sum or mean over the selected elements (`0`), or over all dimensions (empty)."""
    tensor, mask = file.device_tensor(picked.tensors[0]), expressions.mask_of(file, picked.mask)
    assert tensor is not None
    assert mask is not None
    if dim and mask.dims != 1:
        return None
    draft, hits, simple = Draft(file.text), file.text.code(picked.mask), expressions.is_simple(picked.mask)
    source = picked.source
    if source == f"({file.text.code(picked.tensors[0])})":
        source = source[1:-1]
    if name == "mean" and not isinstance(picked.mask, ast.Name | ast.Attribute):
        fresh = named_mask(file, call, picked.mask, draft)
        if fresh is None:
            return None
        source, hits, simple = source.replace(hits, fresh), fresh, True
    more = tensor.dims - mask.dims
    total = f"torch.where({expressions.with_dims(hits, more, simple)}, {source}, 0).sum({dim})"
    if name == "mean":
        count = f"{hits}.sum()" if dim else expressions.count_of(file, picked.tensors[0], hits, more)
        total = expressions.quotient(file, call, total, count)
    draft.replace(call, total)
    return draft


_FUNCTIONS = "F.$name | nn.functional.$name | torch.nn.functional.$name"
_OPTIONS = frozenset("weight label_smoothing".split())
"""Options that don't depend on which elements there are."""
_PRECISE = frozenset({"float32", "float64"})


@rewrite
def masked_loss(file: File) -> Answers:
    for node in file.nodes:
        if isinstance(node, ast.Call) and len(node.args) == 2 and any(file.seen(a).waits for a in node.args):
            loss = matched(_FUNCTIONS, node.func)
            if loss and loss.name in ("cross_entropy", "nll_loss") and _is_plain(node.keywords):
                yield from _of_loss(file, node)


def _is_plain(options: list[ast.keyword]) -> bool:
    """Return whether a loss is a mean or a sum, and has no options that may change with more elements."""
    for option in options:
        reduced = option.arg == "reduction" and (matched("'mean'", option.value) or matched("'sum'", option.value))
        plain = option.arg in _OPTIONS and isinstance(option.value, ast.Constant | ast.Name | ast.Attribute)
        if not reduced and not plain:
            return False
    return True


def _of_loss(file: File, call: ast.Call) -> Iterator[Proposal]:
    scores = gathered(file, call.args[0])
    goals = gathered(file, call.args[1], scores.mask) if scores is not None else None
    draft = Draft(file.text)
    hits = named_mask(file, call, scores.mask, draft) if scores is not None and goals is not None else None
    if scores is None or goals is None or hits is None or not isinstance(call.args[1], ast.Subscript):
        return
    given, classes = file.device_tensor(scores.tensors[0]), file.device_tensor(goals.tensors[0])
    mask = expressions.mask_of(file, scores.mask)
    if given is None or classes is None or mask is None or given.dtype not in _PRECISE or classes.dtype != "int64":
        return
    if len(goals.tensors) != 1 or given.dims != mask.dims + 1 or classes.dims != mask.dims:
        return
    values = f"torch.where({expressions.with_dims(hits, 1, True)}, {scores.source}, 0)"
    targets = f"{goals.source}.masked_fill(~{hits}, -100)"
    if mask.dims > 1:
        values, targets = f"{values}.flatten(0, {mask.dims - 1})", f"{targets}.flatten()"
    options = "".join(f", {file.text.code(k)}" for k in call.keywords)
    draft.replace(call, f"{file.text.code(call.func)}({values}, {targets}{options})")
    change = "compute the loss over all elements, in which those outside of the mask count nothing"
    yield Proposal(node=call, draft=draft, change=change, waits=sum(file.seen(a).waits for a in call.args))
