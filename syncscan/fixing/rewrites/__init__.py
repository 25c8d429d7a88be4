"""The rewrites, in order of precedence."""

from __future__ import annotations

import inspect

from syncscan.fixing.proposal import Rewrite
from syncscan.fixing.rewrites.device_copies import without_waiting
from syncscan.fixing.rewrites.element_reads import element_loop, gathered_reads
from syncscan.fixing.rewrites.loop_constants import constant, device_index
from syncscan.fixing.rewrites.masked_sums import masked_loss, masked_reduction
from syncscan.fixing.rewrites.masked_writes import any_guard, masked_assignment, nonzero_assignment
from syncscan.fixing.rewrites.rarer_reads import deferred_read, late_read, predictions, under_interval
from syncscan.fixing.rewrites.removed_calls import empty_cache, needless_sync
from syncscan.fixing.rewrites.settings import distribution_checks, library_settings, prepared_batches
from syncscan.fixing.rewrites.several_reads import repeated_read, stacked_reads, statement_reads

REWRITES: tuple[Rewrite, ...] = (
    nonzero_assignment,
    any_guard,
    masked_assignment,
    masked_reduction,
    masked_loss,
    needless_sync,
    under_interval,
    deferred_read,
    element_loop,
    gathered_reads,
    stacked_reads,
    statement_reads,
    repeated_read,
    device_index,
    constant,
    without_waiting,
    prepared_batches,
    distribution_checks,
    empty_cache,
    predictions,
    late_read,
    library_settings,
)


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


__all__ = ["REWRITES", "section"]
