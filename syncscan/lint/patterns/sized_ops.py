"""`nonzero`, `unique`, `torch.where(cond)`, `one_hot(x)` and other ops whose result's length depends on values."""

from __future__ import annotations

import ast

from syncscan.lint.imported_names import argument, splats
from syncscan.lint.pattern import Hit, LintSite
from syncscan.lint.values import ValueKind

_MASK = (
    "Keep the shape: torch.where with three arguments, or work with the mask itself; torch.nonzero_static with a bound."
)
_OPS = {
    "nonzero": ("nonzero", _MASK),
    "argwhere": ("nonzero", _MASK),
    "where": ("nonzero", _MASK),
    "masked_select": ("masked-select", "Keep the shape: torch.where(mask, x, 0), or a sum weighted by the mask."),
    "unique": ("unique", "Sort and compare neighbors, which keeps the shape; count known classes with scatter_add_."),
    "unique_consecutive": ("unique", "Compare neighbors, which keeps the shape: x[1:] != x[:-1]."),
    "bincount": ("bincount", "torch.zeros(n, device=…).scatter_add_(0, x, ones) with the known number of classes."),
    "histc": ("histc", "Pass min and max."),
    "nn.functional.one_hot": ("one-hot", "Pass num_classes."),
    "repeat_interleave": ("repeat-interleave", "Pass output_size if the sum of the repeats is known."),
    "coalesce": ("coalesce", "Build it coalesced and pass is_coalesced=True."),
    "to_sparse": ("sparse-op", "Convert once, before the loop; or stay dense with a mask."),
    "to_sparse_csr": ("sparse-op", "Convert once, before the loop; or stay dense with a mask."),
}
"""Op → its rule, and what to do instead."""
_NMS = (
    "torchvision.ops.nms",
    "torchvision.ops.batched_nms",
    "torchvision.ops.boxes.nms",
    "torchvision.ops.boxes.batched_nms",
)
RULES = (*dict.fromkeys(rule for rule, _ in _OPS.values()), "nms")
LOOKS_AT = (ast.Call,)


def find(site: LintSite) -> Hit | None:
    """Match a call of such an op without the argument that would avoid the wait."""
    node = site.node
    if not isinstance(node, ast.Call) or splats(node):
        return None
    if site.evaluator.names.of(node.func) in _NMS and site.place:
        return Hit(
            "nms",
            "nms waits for the number of boxes it keeps",
            "Batch the images: batched_nms once; topk with a fixed k.",
        )
    of = site.operand(*_OPS)
    if of is None or not isinstance(node.func, ast.Attribute | ast.Name):
        return None
    short = site.torch(node) or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
    value = site.value(of)
    named = site.torch(node) != ""
    if value.kind is ValueKind.UNKNOWN and named:
        value = site.value(node)
    if not site.waits_for(value) or _spared(short, node, site, named):
        return None
    rule, fix = _OPS[short]
    name = "torch.where(condition)" if short == "where" else short.rpartition(".")[2]
    return Hit(rule, f"{name} waits for the size of its result", fix)


def _spared(op: str, node: ast.Call, site: LintSite, named: bool) -> bool:
    """Return whether the arguments avoid the wait."""
    at = 1 if named else 0
    if op == "where":
        return not named or len(node.args) + len(node.keywords) != 1
    if op == "nn.functional.one_hot":
        return argument(node, "num_classes", 1) is not None
    if op == "repeat_interleave":
        repeats = argument(node, "repeats", at)
        given = argument(node, "output_size") is not None
        return given or (repeats is not None and not site.value(repeats).tensor)
    return op == "histc" and (argument(node, "min", at + 1) is not None and argument(node, "max", at + 2) is not None)
