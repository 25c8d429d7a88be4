"""`x.tolist()`: a tensor is copied back as a list."""

from __future__ import annotations

import ast

from syncscan.lint.pattern import Hit, LintSite

RULES = ("tolist",)
LOOKS_AT = (ast.Call,)


def find(site: LintSite) -> Hit | None:
    """Match a list of a tensor's values; arrays and frames have the same method."""
    of = site.method("tolist")
    if of is None or not site.waits_for(site.value(of)):
        return None
    return Hit(
        "tolist",
        "tolist() waits for all values of a tensor",
        "Keep it on the device; if you need the list, read several steps at once, or copy into pinned "
        "memory with non_blocking=True, then event.record(), and read it a step later, after event.synchronize().",
    )
