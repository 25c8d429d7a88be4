"""`x.cpu()`, `x.to("cpu")`: a tensor is copied to the host."""

from __future__ import annotations

import ast

from syncscan.lint.evaluate import is_cpu
from syncscan.lint.imported_names import argument
from syncscan.lint.pattern import Hit, LintSite
from syncscan.lint.values import ValueKind
from syncscan.model.finding import Confidence

RULES = ("cpu",)
LOOKS_AT = (ast.Call,)
_FIX = (
    "Compute with it on the device. If the host needs it, copy it into pinned memory with non_blocking=True, then "
    "event.record(), and read a step later, after event.synchronize()."
)


def find(site: LintSite) -> Hit | None:
    """Match a copy to the host of a tensor, or a call of `cpu()`, which only tensors have."""
    if not isinstance(site.node, ast.Call):
        return None
    of = site.method("cpu")
    if of is None and (receiver := site.method("to")) is not None and is_cpu(argument(site.node, "device", 0)):
        of = receiver
    if (
        of is None or site.asynchronous
    ):  # torch pins what `to` returns (`pin_out`, TensorConversions.cpp): it doesn't wait
        return None
    value = site.value(of)
    unclear = value.kind in (ValueKind.UNKNOWN, ValueKind.OUTPUT) and bool(site.place)
    if not (unclear or site.waits_for(value)):
        return None
    confidence = Confidence.LOW if unclear else Confidence.MEDIUM
    return Hit("cpu", "a copy to the host waits for the tensor", _FIX, confidence)
