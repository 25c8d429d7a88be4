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

ID = "masked-reduction"
TITLE = "A sum or mean over masked elements"
RULES = ("boolean-index", "masked-select", "index-backward")
SAFETY = Safety.SAFE
BEFORE = "result = x[mask].mean()"
AFTER = "result = torch.where(mask, x, 0).sum() / mask.sum()"
_PRECISE = frozenset("float32 float64 int64 int32 bool".split())


def find(file: File) -> Iterator[Proposal | Left]:
    """Yield the sums and means of what a mask picks."""
    for node in file.nodes:
        if isinstance(node, ast.Call) and file.seen(node).waits:
            yield from _of(file, node)


def _of(file: File, call: ast.Call) -> Iterator[Proposal]:
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in ("sum", "mean"):
        return
    inner, dim = function.value, _dimension(call)
    if questions.is_torch(inner):
        if len(call.args) != 1 or call.keywords:
            return
        inner, dim = call.args[0], None
    elif dim == "other":
        return
    picked = gathered(file, inner)
    if picked is None or not _is_precise(file, picked):
        return
    draft = _draft(file, call, function.attr, picked, dim)
    if draft is not None:
        yield Proposal(
            node=call,
            draft=draft,
            change=f"compute the {function.attr} over all elements with torch.where",
            waits=file.seen(call).waits,
        )


def _dimension(call: ast.Call) -> str | None:
    """Return `0` for a sum over the selected elements, None for one over all dimensions, and `other` for the rest."""
    given = [*call.args, *(k.value for k in call.keywords if k.arg == "dim")]
    if not given and not call.keywords:
        return None
    if len(given) == len(call.args) + len(call.keywords) == 1 and isinstance(given[0], ast.Constant):
        return "0" if given[0].value == 0 else "other"
    return "other"


def _is_precise(file: File, picked: Gathered) -> bool:
    return all((t := file.device_tensor(x)) is not None and t.dtype in _PRECISE for x in picked.tensors)


def _draft(file: File, call: ast.Call, name: str, picked: Gathered, dim: str | None) -> Draft | None:
    tensor, mask = file.device_tensor(picked.tensors[0]), questions.mask_of(file, picked.mask)
    assert tensor is not None
    assert mask is not None
    if dim == "0" and mask.dims != 1:
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
    condition = questions.with_dims(hits, more, simple)
    picks = f"torch.where({condition}, {source}, 0)"
    if name == "sum":
        draft.replace(call, f"{picks}.sum({dim or ''})")
    elif dim:
        draft.replace(call, _ratio(file, call, f"{picks}.sum(0)", f"{hits}.sum()"))
    else:
        count = f"{condition}.expand_as({file.text.code(picked.tensors[0])}).sum()" if more else f"{hits}.sum()"
        draft.replace(call, _ratio(file, call, f"{picks}.sum()", count))
    return draft


def _ratio(file: File, call: ast.Call, above: str, below: str) -> str:
    """Return a fraction, in parentheses where the context binds tighter."""
    parent = file.parents[call]
    closer = isinstance(parent, ast.BinOp | ast.UnaryOp | ast.Attribute | ast.Subscript | ast.Compare)
    return f"({above} / {below})" if closer else f"{above} / {below}"
