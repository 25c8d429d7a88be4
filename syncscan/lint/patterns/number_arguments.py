"""`range(t)`, `torch.arange(t)`, `torch.zeros((t, 3))`, `x.view(t, -1)`: a tensor is used as a number."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.lint.pattern import Hit, LintSite
from syncscan.lint.values import Value, ValueKind

RULES = ("number-argument",)
LOOKS_AT = (ast.Call,)
_SIZED = ("arange", "zeros", "ones", "empty", "full", "linspace", "eye", "randn", "rand")
_SHAPED = ("view", "reshape", "expand", "repeat", "tile", "unflatten", "new_zeros", "new_ones", "new_empty", "new_full")
"""Methods with sizes as arguments."""
_FIX = (
    "Keep sizes and bounds as Python ints from shapes or the configuration; for ranges compare with torch.arange of a "
    "fixed length."
)


def find(site: LintSite) -> Hit | None:
    """Match a tensor as an argument that takes numbers, alone or in a shape."""
    node = site.node
    if not isinstance(node, ast.Call):
        return None
    name = site.evaluator.names.of(node.func)
    receiver = site.method(*_SHAPED)
    shaped = receiver is not None and site.value(receiver).kind in (ValueKind.TENSOR, ValueKind.OUTPUT)
    takes = name == "range" or site.torch(node) in _SIZED or shaped
    if not takes or not any((v.scalar or name == "range") and site.waits_for(v) for v in _sizes(node, site)):
        return None
    called = name.rpartition(".")[2] or node.func.attr if isinstance(node.func, ast.Attribute) else name
    return Hit("number-argument", f"{called} waits for a tensor that it uses as a number", _FIX)


def _sizes(call: ast.Call, site: LintSite) -> Iterator[Value]:
    """Yield the arguments given as sizes: each argument, and each element of a shape."""
    given = [*call.args, *(k.value for k in call.keywords if k.arg in ("size", "shape"))]
    for argument in given:
        for part in argument.elts if isinstance(argument, ast.Tuple | ast.List) else [argument]:
            value = site.value(part)
            element = part is not argument and isinstance(part, ast.Subscript) and not isinstance(part.slice, ast.Slice)
            yield value.but(scalar=True) if element else value
