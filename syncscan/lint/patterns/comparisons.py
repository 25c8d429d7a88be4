"""`torch.equal(a, b)`, `torch.allclose(a, b)`, `torch.testing.assert_close`: the answer is copied to the host."""

from __future__ import annotations

import ast

from syncscan.lint.pattern import Hit, LintSite

RULES = ("equal", "allclose")
LOOKS_AT = (ast.Call,)
_FIXES = {
    "equal": "Keep (a == b).all() as a tensor; compare shapes on the host.",
    "allclose": "Keep torch.isclose(a, b).all() as a tensor and read it every N steps; or move the check to a test.",
}


def find(site: LintSite) -> Hit | None:
    """Return a comparison of whole tensors."""
    if not isinstance(site.node, ast.Call):
        return None
    name = site.torch(site.node)
    rule = {"equal": "equal", "allclose": "allclose", "testing.assert_close": "allclose"}.get(name, "")
    operands = site.node.args[:2]
    if not rule and (of := site.method("equal", "allclose")) is not None:
        assert isinstance(site.node.func, ast.Attribute)
        rule, operands = site.node.func.attr, [of, *site.node.args[:1]]
        if not site.value(of).tensor:
            return None
    values = [site.value(operand) for operand in operands]
    if rule == "equal" and len(operands) == 2 and ast.dump(operands[0]) == ast.dump(operands[1]):
        return None  # equal looks at the storage first
    if not rule or any(value.on_host for value in values) or not (site.waits_for(*values)):
        return None
    return Hit(rule, f"{rule} reads its result back", _FIXES[rule])
