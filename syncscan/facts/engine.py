"""From a trace to when autograd's engine worked on any thread: where its backward passes are."""

from __future__ import annotations

import numpy as np

from syncscan.model.arrays import Int64
from syncscan.model.names import is_engine
from syncscan.model.trace import HOST, Trace, once


@once
def nodes(trace: Trace) -> Int64:
    """Rows of the engine's ranges around the nodes of a graph, ascending."""
    return trace.where(is_engine, *HOST)


@once
def node_begins(trace: Trace) -> Int64:
    """When the engine began each node of a graph, ns, ascending."""
    return np.sort(trace.slices.ts[nodes(trace)])


__all__ = ["node_begins", "nodes"]
