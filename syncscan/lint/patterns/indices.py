"""`x[:n]`, `x[i]` with a scalar tensor, `x[index] = 1.0`, `x[[0, 3]]`: values cross between host and device."""

from __future__ import annotations

import ast

from syncscan.lint.pattern import Hit, LintSite
from syncscan.lint.values import TENSOR, ValueKind

RULES = ("tensor-index", "scalar-assign", "cpu-index")
LOOKS_AT = (ast.Subscript,)
_INDEX = (
    "x.index_select(0, i.view(1)) or torch.gather for an index (a copy, not a view); for x[:n] mask with "
    "torch.arange(len(x), device=x.device) < n."
)
_LIST = (
    "Create the index once, as a tensor on the device (a buffer: torch.tensor([…], device=x.device)); use a slice "
    "for a range."
)
_ON_HOST = "Keep the tensor on the device too, or use an index that is on the host."


def find(site: LintSite) -> Hit | None:
    """Match a tensor as a slice's bound, an index that is a list or has no dimensions, or an assigned number."""
    node = site.node
    if not isinstance(node, ast.Subscript):
        return None
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if any(isinstance(part, ast.Slice) and _bounds(part, site) for part in parts):
        return Hit("tensor-index", "a slice waits for its bound, which is a tensor", _INDEX)
    given = [site.value(part) for part in parts if not isinstance(part, ast.Slice)]
    indexed = site.value(node.value)
    if indexed.kind in (ValueKind.TENSOR, ValueKind.OUTPUT) and any(v.listed for v in given):
        sure = indexed if indexed.tensor else TENSOR
        return (
            Hit("cpu-index", "a list used as an index is copied to the device", _LIST) if site.waits_for(sure) else None
        )
    indices = [v for v in given if v.tensor]
    if not indices or not site.waits_for(*indices) or any(v.mask for v in indices):
        return None
    if isinstance(node.ctx, ast.Load):
        if indexed.kind is ValueKind.CPU:  # torch takes no other index of a device there than a number
            return Hit("tensor-index", "a tensor on the host waits for its index, a tensor on the device", _ON_HOST)
        if any(v.scalar for v in indices) and indexed.kind is not ValueKind.UNKNOWN:
            return Hit("tensor-index", "an index waits for a tensor", _INDEX)
        return None
    value = site.evaluator.assigned_value
    number = isinstance(value, ast.Constant) and isinstance(value.value, int | float)
    if not number or any(v.scalar for v in indices) or not site.value(node.value).tensor:
        return None
    return Hit(
        "scalar-assign",
        "x[index] = number copies the number to the device synchronously",
        "x.index_fill_(0, index, value), or a device tensor as value.",
    )


def _bounds(part: ast.Slice, site: LintSite) -> bool:
    return any(bound is not None and site.waits_for(site.value(bound)) for bound in (part.lower, part.upper, part.step))
