"""`if x.any():`, `while`, `assert`, `not`, `and`, `bool(x)`: Python takes a tensor's truth value."""

from __future__ import annotations

import ast

from syncscan.lint.pattern import Hit, LintSite

RULES = ("tensor-bool", "nan-guard")
LOOKS_AT = ("question",)
_FIX = (
    "For a check that raises, accumulate the results on the device (bad |= cond) and check once, after the loop or "
    "every N steps; for a choice of values torch.where(cond, a, b); multiply an update by the condition "
    "instead of skipping it."
)
_GUARD = (
    "Count on the device (bad += torch.isnan(loss)) and read the count every N steps; replace NaNs on the device with "
    "torch.nan_to_num or torch.where(torch.isfinite(loss), loss, 0)."
)


def find(site: LintSite) -> Hit | None:
    """Match a question for the truth value of a comparison, or of a tensor with one element."""
    value = site.value(site.node)
    if not site.waits_for(value):
        return None
    if not (value.mask or value.scalar) or isinstance(site.node, ast.Tuple | ast.List | ast.ListComp):
        return None
    if value.test:
        return Hit("nan-guard", f"a guard with {value.test} waits for its result", _GUARD)
    return Hit("tensor-bool", f"'{site.question}' waits for the truth value of a tensor", _FIX)
