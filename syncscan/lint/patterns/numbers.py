"""`x.item()`, `float(x)`, `int(x)`: one number is read back."""

from __future__ import annotations

import ast

from syncscan.lint.pattern import Hit, LintSite
from syncscan.lint.values import ValueKind
from syncscan.model.finding import Confidence

RULES = ("item", "nan-guard")
LOOKS_AT = (ast.Call,)
_FIX = (
    "If it is only logged or summed, keep it on the device (total += x.detach()) and read it every N steps, "
    "several values with one torch.stack(values).tolist(). If the host branches on it, use torch.where."
)
_GUARD = "Count on the device (bad += torch.isnan(loss)) and read the count every N steps."


def find(site: LintSite) -> Hit | None:
    """Match a read of a number from a tensor, or from what can only be one."""
    if not isinstance(site.node, ast.Call):
        return None
    of, spelling = site.method("item"), ".item()"
    if of is None and isinstance(site.node.func, ast.Name) and site.node.func.id in ("float", "int", "complex"):
        of = site.node.args[0] if len(site.node.args) == 1 and not site.node.keywords else None
        spelling = f"{site.node.func.id}()"
    elif site.node.args or site.node.keywords:
        return None
    if of is None:
        return None
    value = site.value(of)
    unclear = value.kind in (ValueKind.UNKNOWN, ValueKind.OUTPUT) and spelling == ".item()" and bool(site.place)
    if not (unclear or site.waits_for(value)):
        return None
    if value.test:
        return Hit("nan-guard", f"a guard with {value.test} waits for its result", _GUARD)
    return Hit("item", f"{spelling} waits for a number", _FIX, Confidence.LOW if unclear else Confidence.MEDIUM)
