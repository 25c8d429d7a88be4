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
    forward_constant,
    gathered_reads,
    index_fill,
    known_repeats,
    lengths_roundtrip,
    library_settings,
    logged_numbers,
    masked_assignment,
    masked_loss,
    masked_reduction,
    metric_numbers,
    needless_sync,
    nonzero_assignment,
    predictions,
    prepared_batches,
    same_read,
    stacked_reads,
    under_interval,
    without_waiting,
)

REWRITES: tuple[Rewrite, ...] = (
    nonzero_assignment,
    any_guard,
    masked_assignment,
    masked_reduction,
    masked_loss,
    lengths_roundtrip,
    known_repeats,
    needless_sync,
    under_interval,
    metric_numbers,
    deferred,
    same_read,
    element_loop,
    gathered_reads,
    stacked_reads,
    device_index,
    index_fill,
    forward_constant,
    constant,
    without_waiting,
    prepared_batches,
    logged_numbers,
    distribution_checks,
    empty_cache,
    predictions,
    library_settings,
)

__all__ = ["REWRITES"]
