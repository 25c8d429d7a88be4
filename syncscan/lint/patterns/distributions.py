"""`Normal(mean, std)`, `dist.log_prob(x)`: torch.distributions read back whether their arguments are valid."""

from __future__ import annotations

import ast

from syncscan.lint.pattern import Hit, LintSite
from syncscan.lint.values import ValueKind

RULES = ("distribution-args",)
LOOKS_AT = (ast.Call,)
_FIX = "Pass validate_args=False once the model works, or Distribution.set_default_validate_args(False)."
_CHECKED = ("log_prob", "cdf", "icdf")
"""Methods that check the value they are given."""


def find(site: LintSite) -> Hit | None:
    """Match a distribution of torch's that is made of tensors, or is asked for the probability of a value."""
    node = site.node
    if not isinstance(node, ast.Call) or not site.place:
        return None
    if site.value(node).kind is ValueKind.DISTRIBUTION and not _on_host(site, node):
        return Hit("distribution-args", "a distribution waits to validate its arguments", _FIX)
    of = site.method(*_CHECKED)
    if of is not None and site.value(of).kind is ValueKind.DISTRIBUTION:
        return Hit("distribution-args", "a distribution waits to validate the value", _FIX)
    return None


def _on_host(site: LintSite, call: ast.Call) -> bool:
    """Return whether all that it is made of lies on the host."""
    given = [site.value(value) for value in (*call.args, *(keyword.value for keyword in call.keywords))]
    return all(value.on_host for value in given)
