"""The rewrites, in order of precedence."""

from __future__ import annotations

from syncscan.fixing.proposal import Rewrite, described
from syncscan.fixing.rewrites import (
    device_copies,
    masked_assignments,
    masked_sums,
    rarer_reads,
    removed_calls,
    settings,
    several_reads,
)

_MODULES = (device_copies, masked_sums, masked_assignments, rarer_reads, removed_calls, settings, several_reads)
_FINDERS = {value.id: value for module in _MODULES for value in vars(module).values() if isinstance(value, Rewrite)}
REWRITES = tuple(_FINDERS[name] for name in described())


def section(rule: str) -> str:
    """Return the part of a rule's page about `syncscan fix`, as Markdown; empty if no rewrite knows the rule."""
    rewrites = [rewrite for rewrite in REWRITES if rule in rewrite.rules]
    if not rewrites:
        return ""
    head = "`syncscan fix` rewrites these patterns, and verifies each change by a dry run."
    return f"\n## What syncscan fix does\n\n{head}\n" + "".join(map(_paragraph, rewrites))


def _paragraph(rewrite: Rewrite) -> str:
    return (
        f"\n**{rewrite.id}** ({rewrite.safety.value}): {rewrite.title}.\n\n{rewrite.text}\n"
        f"```python\n{rewrite.before}\n```\n\nbecomes\n\n```python\n{rewrite.after}\n```\n"
    )


__all__ = ["REWRITES", "section"]
