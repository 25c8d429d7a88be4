"""`torch.tensor([…], device=…)`, `x.new_tensor(…)`: host data is copied to the device."""

from __future__ import annotations

import ast

from syncscan.lint.imported_names import argument
from syncscan.lint.pattern import Hit, LintSite
from syncscan.lint.values import ValueKind

RULES = ("tensor-constructor", "tensor-of-tensors")
LOOKS_AT = (ast.Call,)
_FIX = (
    "Create it once, before the loop (as a buffer of the module); or fill it on the device, which copies nothing: "
    "torch.full((), 3.0, device=…), torch.zeros, torch.arange."
)


def find(site: LintSite) -> Hit | None:
    """Match a tensor made of host data on a device, in code that runs in each step."""
    node = site.node
    if not isinstance(node, ast.Call) or not node.args:
        return None
    name, data = site.torch(node), node.args[0]
    value = site.value(node)
    fresh = site.method("new_tensor")
    if name in ("tensor", "as_tensor", "asarray"):
        if name == "tensor" and _holds_tensors(data, site) and (site.place or site.in_loop):
            return Hit(
                "tensor-of-tensors",
                "torch.tensor reads the tensors in its list one by one",
                "Use torch.stack(values), which keeps them on the device.",
            )
        if argument(node, "device") is None or not value.tensor or (name != "tensor" and not _of_host(data, site)):
            return None
    elif fresh is None or not site.value(fresh).tensor:
        return None
    if site.value(data).tensor or not site.waits_for(value):
        return None
    return Hit("tensor-constructor", "a constructor copies its data to the device and waits", _FIX)


def _holds_tensors(data: ast.expr, site: LintSite) -> bool:
    if isinstance(data, ast.List | ast.Tuple):
        return any(site.waits_for(site.value(element)) for element in data.elts)
    return isinstance(data, ast.ListComp) and site.waits_for(site.value(data))


def _of_host(data: ast.expr, site: LintSite) -> bool:
    """Return whether `as_tensor` copies anything; a tensor that is there already is returned unchanged."""
    return isinstance(data, ast.List | ast.Tuple | ast.Constant) or site.value(data).kind is ValueKind.HOST
