"""`scaler.step(optimizer)`: a gradient scaler reads back whether a gradient overflowed."""

from __future__ import annotations

import ast
import re

from syncscan.lint.imported_names import key
from syncscan.lint.pattern import Hit, LintSite

RULES = ("grad-scaler",)
LOOKS_AT = (ast.Call,)
_SCALER = re.compile(r"(^|[._])(grad_?|amp_?)?scaler$", re.I)
_OPTIMIZER = re.compile(r"optim|(^|[._])opt\d?$", re.I)
_FIX = "Use a fused optimizer (fused=True): it reads found_inf on the device. Or train in bfloat16 without a scaler."


def find(site: LintSite) -> Hit | None:
    """Match an optimizer's step that a scaler decides about; the severity is low, as the scaler may be switched off."""
    node = site.node
    if not isinstance(node, ast.Call) or not site.place or len(node.args) != 1:
        return None
    of = site.method("step")
    if of is None or not _SCALER.search(key(of)) or not _OPTIMIZER.search(key(node.args[0])):
        return None
    return Hit("grad-scaler", "the scaler waits to check whether a gradient overflowed", _FIX, seldom=True)
