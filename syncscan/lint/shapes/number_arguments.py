"""`range(t)`, `torch.arange(t)`, `torch.zeros(t)`, `x.view(t, -1)`: a tensor is used as a number."""

from __future__ import annotations

import ast

from syncscan.lint.shape import Hit, Site

RULES = ("number-argument",)
LOOKS_AT = (ast.Call,)
_SIZED = ("arange", "zeros", "ones", "empty", "full", "linspace", "eye", "randn", "rand")
_FIX = (
    "Keep sizes and bounds as Python ints from shapes or the configuration; for ranges compare with torch.arange of a "
    "fixed length."
)


def find(site: Site) -> Hit | None:
    """A tensor as the argument of what takes numbers."""
    node = site.node
    if not isinstance(node, ast.Call):
        return None
    name = site.evaluator.names.of(node.func)
    takes = name == "range" or site.torch(node) in _SIZED
    values = [site.value(a) for a in node.args]
    if not takes or not any((v.scalar or name == "range") and site.waits_for(v) for v in values):
        return None
    return Hit("number-argument", f"{name.rpartition('.')[2]} waits for a tensor that it takes as a number", _FIX)
