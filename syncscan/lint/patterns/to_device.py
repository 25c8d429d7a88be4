"""`batch.to(device)`, `torch.from_numpy(a).cuda()`: a copy to the device that blocks."""

from __future__ import annotations

import ast

from syncscan.lint.imported_names import argument
from syncscan.lint.pattern import Hit, LintSite
from syncscan.lint.values import ValueKind

RULES = ("to-device",)
LOOKS_AT = (ast.Call,)
_BATCH = "DataLoader(pin_memory=True) and x.to(device, non_blocking=True); don't change it until the copy has run."
_MADE = (
    "The same values each time: make them once, before the loop, on the device; if torch creates them, pass device=. "
    "New data: pinned memory and non_blocking=True, unchanged until the copy has run."
)


def find(site: LintSite) -> Hit | None:
    """Match a blocking copy of a loader's batch, or of a tensor that was just made on the CPU."""
    node = site.node
    if not isinstance(node, ast.Call) or not (site.place or site.in_loop):
        return None
    of = site.method("cuda")
    if of is None and (receiver := site.method("to")) is not None:
        where = argument(node, "device", 0)
        of = receiver if where is not None and site.evaluator.names_device(where) else None
    if of is None or site.asynchronous:
        return None
    value = site.value(of)
    if value.kind is ValueKind.BATCH:
        reason = f"The loader (line {value.line}) doesn't pin its memory." if value.line and not value.pinned else ""
        return Hit("to-device", "a batch is copied to the device synchronously", _BATCH, seen=reason)
    if value.kind is ValueKind.CPU and site.place:
        return Hit("to-device", "a CPU tensor is copied to the device synchronously", _MADE)
    return None
