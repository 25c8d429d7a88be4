"""The rewrites, in order of precedence."""

from __future__ import annotations

from syncscan.fixing.proposal import Rewrite
from syncscan.fixing.rewrites import (
    any_guard,
    constant,
    deferred,
    device_index,
    distribution_checks,
    element_loop,
    empty_cache,
    gathered_reads,
    late_read,
    library_settings,
    masked_assignment,
    masked_loss,
    masked_reduction,
    needless_sync,
    nonzero_assignment,
    predictions,
    prepared_batches,
    repeated_read,
    stacked_reads,
    statement_reads,
    under_interval,
    without_waiting,
)

REWRITES: tuple[Rewrite, ...] = (
    nonzero_assignment,
    any_guard,
    masked_assignment,
    masked_reduction,
    masked_loss,
    needless_sync,
    under_interval,
    deferred,
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

__all__ = ["REWRITES"]
