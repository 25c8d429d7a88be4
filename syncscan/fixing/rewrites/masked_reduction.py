"""Writes `x[mask].sum()` as `torch.where(mask, x, 0).sum()`, and the mean as its quotient with the number of matches.

`torch.masked_select(x, mask)` is rewritten too, if both have one shape, and so are elementwise expressions of what one
mask selects, comparisons among them: `(x[mask] == y[mask]).sum()`.

Both compute over the whole tensor, in a different order of additions, so results agree except for rounding. An empty
mask gives 0 and NaN as before. Elements outside of the mask get no gradient, even if they are NaN or infinite. Half
precision isn't rewritten, since its sums overflow at other points; neither are max and min, which raise for an empty
mask.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import questions
from syncscan.fixing.edits import Draft
from syncscan.fixing.gathered import Gathered, gathered, named_mask
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety
from syncscan.source.code_pattern import matched

ID = "masked-reduction"
TITLE = "A sum or mean over masked elements"
RULES = ("boolean-index", "masked-select", "index-backward")
SAFETY = Safety.SAFE
BEFORE = "result = x[mask].mean()"
AFTER = "result = torch.where(mask, x, 0).sum() / mask.sum()"
_REDUCTIONS = "torch.$name($x) | $x.$name() | $x.$name($dim) | $x.$name(dim=$dim)"
_PRECISE = frozenset("float32 float64 int64 int32 bool".split())


def find(file: File) -> Iterator[Proposal | Left]:
    for node in file.nodes:
        if isinstance(node, ast.Call) and file.seen(node).waits:
            yield from _of(file, node)


def _of(file: File, call: ast.Call) -> Iterator[Proposal]:
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
    return all((t := file.device_tensor(x)) is not None and t.dtype in _PRECISE for x in picked.tensors)


def _draft(file: File, call: ast.Call, name: str, picked: Gathered, dim: str) -> Draft | None:
    """Return the draft for a sum or mean over the selected elements (`0`), or over all dimensions (empty)."""
    tensor, mask = file.device_tensor(picked.tensors[0]), questions.mask_of(file, picked.mask)
    assert tensor is not None
    assert mask is not None
    if dim and mask.dims != 1:
        return None
    draft, hits, simple = Draft(file.text), file.text.code(picked.mask), questions.is_simple(picked.mask)
    source = picked.source
    if source == f"({file.text.code(picked.tensors[0])})":
        source = source[1:-1]
    if name == "mean" and not isinstance(picked.mask, ast.Name | ast.Attribute):
        fresh = named_mask(file, call, picked.mask, draft)
        if fresh is None:
            return None
        source, hits, simple = source.replace(hits, fresh), fresh, True
    more = tensor.dims - mask.dims
    total = f"torch.where({questions.with_dims(hits, more, simple)}, {source}, 0).sum({dim})"
    if name == "mean":
        count = f"{hits}.sum()" if dim else questions.count_of(file, picked.tensors[0], hits, more)
        total = questions.quotient(file, call, total, count)
    draft.replace(call, total)
    return draft
