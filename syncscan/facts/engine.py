"""Find when autograd's engine ran on any thread, that is, a trace's backward passes."""

from __future__ import annotations

import numpy as np

from syncscan.model.arrays import Int64
from syncscan.model.slice_names import is_engine
from syncscan.model.trace import HOST, Trace, once


@once
def nodes(trace: Trace) -> Int64:
    """Return the rows of the engine's ranges around graph nodes, ascending."""
    return trace.where(is_engine, *HOST)


@once
def node_begins(trace: Trace) -> Int64:
    """Return when the engine began each graph node, ns, ascending."""
    return np.sort(trace.slices.ts[nodes(trace)])


__all__ = ["node_begins", "nodes"]
