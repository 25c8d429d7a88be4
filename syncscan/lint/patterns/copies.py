"""Copies to the device."""

from __future__ import annotations

import ast

from syncscan.lint.pattern import Hit, LintSite, pattern
from syncscan.lint.values import ValueKind
from syncscan.source.names import argument


@pattern(ast.Call, rules="tensor-constructor tensor-of-tensors")
def constructors(site: LintSite) -> Hit | None:
    """Match `torch.tensor([…], device=…)`, `x.new_tensor(…)`: host data is copied to the device."""
    call, name = site.call, site.torch(site.call)
    fresh = site.method("new_tensor")
    if not call.args or not (name in ("tensor", "as_tensor", "asarray") or fresh is not None):
        return None
    data, value = call.args[0], site.value(call)
    if name == "tensor" and _holds_tensors(data, site) and site.often:
        return Hit(
            "tensor-of-tensors",
            "torch.tensor reads the tensors in its list one by one",
            "Use torch.stack(values), which keeps them on the device.",
        )
    if fresh is not None:
        copies = site.value(fresh).tensor
    else:  # a tensor that is there already is returned unchanged, but by `torch.tensor`
        host = isinstance(data, ast.List | ast.Tuple | ast.Constant) or site.value(data).kind is ValueKind.HOST
        copies = argument(call, "device") is not None and value.tensor and (name == "tensor" or host)
    if not copies or site.value(data).tensor or not site.waits_for(value):
        return None
    return Hit(
        "tensor-constructor",
        "a constructor copies its data to the device and waits",
        "Create it once, before the loop (as a buffer of the module); or fill it on the device, which copies nothing: "
        "torch.full((), 3.0, device=…), torch.zeros, torch.arange.",
    )


def _holds_tensors(data: ast.expr, site: LintSite) -> bool:
    if isinstance(data, ast.List | ast.Tuple):
        return any(site.waits_for(site.value(element)) for element in data.elts)
    return isinstance(data, ast.ListComp) and site.waits_for(site.value(data))


@pattern(ast.Call, rules="to-device")
def to_device(site: LintSite) -> Hit | None:
    """Match `batch.to(device)`, `torch.from_numpy(a).cuda()`: a copy to the device that blocks."""
    of = site.method("cuda")
    if of is None and (where := argument(site.call, "device", 0)) is not None and site.evaluator.names_device(where):
        of = site.method("to")
    if of is None or not site.often or site.asynchronous:
        return None
    value = site.value(of)
    if value.kind is ValueKind.BATCH:
        fix = "DataLoader(pin_memory=True) and x.to(device, non_blocking=True); don't change it until the copy has run."
        reason = f"The loader (line {value.line}) doesn't pin its memory." if value.line and not value.pinned else ""
        return Hit("to-device", "a batch is copied to the device synchronously", fix, seen=reason)
    if value.kind is ValueKind.CPU and site.place:
        fix = (
            "The same values each time: make them once, before the loop, on the device; if torch creates them, pass "
            "device=. New data: pinned memory and non_blocking=True, unchanged until the copy has run."
        )
        return Hit("to-device", "a CPU tensor is copied to the device synchronously", fix)
    return None
