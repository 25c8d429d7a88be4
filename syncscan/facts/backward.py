"""Find when autograd's engine ran on any thread, and the forward ops of a backward pass's ops."""

from __future__ import annotations

import numpy as np

from syncscan.model.arrays import Int64, among
from syncscan.model.slice_names import is_engine
from syncscan.model.trace import HOST, NONE, Category, Trace, once


@once
def nodes(trace: Trace) -> Int64:
    """Return the rows of the engine's ranges around graph nodes, ascending."""
    return trace.where(is_engine, *HOST)


@once
def node_begins(trace: Trace) -> Int64:
    return np.sort(trace.slices.ts[nodes(trace)])


def forward_ops(trace: Trace, backward: Int64) -> Int64:
    """Return the row of each op's forward op, NONE without a matching sequence number.

    Both have the same sequence number. If several forward ops have it, the last to begin before the backward op counts
    (torch/csrc/profiler/collection.cpp, generateForwardBackwardLink).
    """
    s, (ops, _) = trace.slices, trace.rows_of(Category.CPU_OP)
    forward = ops[(s.sequence.take(ops) != NONE) & (s.fwd_thread.take(ops) <= 0)]
    forward = forward[among(s.sequence[forward], s.sequence[backward])]
    rows = np.concatenate([forward, backward])
    is_forward = np.arange(len(rows)) < len(forward)
    order = np.lexsort((is_forward, s.ts[rows], s.sequence[rows]))
    last = np.maximum.accumulate(np.where(is_forward[order], np.arange(len(rows)), NONE))
    linked = ~is_forward[order] & (last != NONE) & (s.sequence[rows[order]] == s.sequence[rows[order[last]]])
    forward_of = np.full(len(rows), NONE, np.int64)
    forward_of[order[linked]] = rows[order[last[linked]]]
    return forward_of[len(forward) :]
