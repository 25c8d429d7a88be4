"""Describes the rewrites on the pages of the rules whose waits they remove."""

from __future__ import annotations

import inspect

from syncscan.fixing.proposal import Rewrite
from syncscan.fixing.rewrites import REWRITES


def section(rule: str) -> str:
    """Return the part of a rule's page about `syncscan fix`, as Markdown; empty if no rewrite knows the rule."""
    rewrites = [rewrite for rewrite in REWRITES if rule in rewrite.rules]
    if not rewrites:
        return ""
    head = "`syncscan fix` rewrites these patterns, and verifies each change by a dry run."
    return f"\n## What syncscan fix does\n\n{head}\n" + "".join(_paragraph(rewrite) for rewrite in rewrites)


def _paragraph(rewrite: Rewrite) -> str:
    conditions = (inspect.getdoc(rewrite.find) or "").partition("\n\n")[2]
    lines = [
        f"\n**{rewrite.id}** ({rewrite.safety.value}): {rewrite.title}.",
        *([conditions] if conditions else []),
        f"```python\n{rewrite.before}\n```",
        "becomes",
        f"```python\n{rewrite.after}\n```\n",
    ]
    return "\n\n".join(lines)
