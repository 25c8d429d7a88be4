"""`x[x > 0]`, `x[mask] = tensor`: the number of selected elements is read back."""

from __future__ import annotations

import ast

from syncscan.lint.pattern import Hit, LintSite
from syncscan.lint.values import ValueKind
from syncscan.model.finding import Confidence

RULES = ("boolean-index", "boolean-assign")
LOOKS_AT = (ast.Subscript,)
_READ = (
    "Keep the shape: torch.where(mask, x, 0), a masked sum, (x * mask).sum() / mask.sum(), or the loss's ignore_index."
)
_WRITTEN = "torch.where(mask, value, x), or masked_scatter_ for a vector; a Python number as value doesn't wait."


def find(site: LintSite) -> Hit | None:
    """Match an index with a mask from a comparison; assigning a Python number doesn't wait."""
    node = site.node
    if not isinstance(node, ast.Subscript) or site.value(node.value).on_host:
        return None
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    masks = [site.value(part) for part in parts if site.value(part).mask and not site.value(part).on_host]
    unclear = bool(masks) and all(mask.kind is ValueKind.UNKNOWN for mask in masks)
    if not masks or not (site.place if unclear else site.waits_for(*(m for m in masks if m.tensor))):
        return None
    if isinstance(node.ctx, ast.Load):
        confidence = Confidence.LOW if unclear else Confidence.MEDIUM
        return Hit("boolean-index", "x[mask] waits for the number of selected elements", _READ, confidence)
    value = site.value(site.evaluator.assigned_value)
    if value.kind is not ValueKind.TENSOR:
        return None
    return Hit("boolean-assign", "x[mask] = tensor waits for the number of selected elements", _WRITTEN)
