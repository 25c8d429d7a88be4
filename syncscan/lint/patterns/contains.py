"""`3 in t`, `x in tensor`: membership is tested on the host."""

from __future__ import annotations

import ast

from syncscan.lint.pattern import Hit, LintSite

RULES = ("contains",)
LOOKS_AT = (ast.Compare,)


def find(site: LintSite) -> Hit | None:
    """Return a test for membership of a tensor."""
    node = site.node
    if not isinstance(node, ast.Compare):
        return None
    if not any(isinstance(op, ast.In | ast.NotIn) for op in node.ops) or not site.waits_for(
        site.value(node.comparators[0])
    ):
        return None
    if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
        return None
    return Hit(
        "contains",
        "'in' waits for its result",
        "Keep (t == value).any() as a tensor (torch.isin for many values), and act on it with torch.where.",
    )
