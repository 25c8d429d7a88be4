"""From ops of a backward pass to the forward ops that made them."""

from __future__ import annotations

import numpy as np

from syncscan.model.arrays import Int64, among, distinct
from syncscan.model.trace import NONE, Category, Trace


def forward_ops(trace: Trace, backward: Int64) -> Int64:
    """Return for each of these ops the row of the forward op that made it, NONE where no sequence number tells.

    The two share the number; several forward ops may, and the last of them to begin before the backward one made it
    (torch/csrc/profiler/collection.cpp, generateForwardBackwardLink).

    Args:
        trace: any trace.
        backward: rows of ops of a backward pass.
    """
    s, (ops, _) = trace.slices, trace.rows_of(Category.CPU_OP)
    forward = ops[(s.sequence.take(ops) != NONE) & (s.fwd_thread.take(ops) <= 0)]
    forward = forward[among(s.sequence[forward], distinct(s.sequence[backward]))]
    rows = np.concatenate([forward, backward])
    is_forward = np.arange(len(rows)) < len(forward)
    order = np.lexsort((is_forward, s.ts[rows], s.sequence[rows]))
    last = np.maximum.accumulate(np.where(is_forward[order], np.arange(len(rows)), NONE))
    made = ~is_forward[order] & (last != NONE) & (s.sequence[rows[order]] == s.sequence[rows[order[last]]])
    found = np.full(len(rows), NONE, np.int64)
    found[order[made]] = rows[order[last[made]]]
    return found[len(forward) :]


__all__ = ["forward_ops"]
