"""From a sync point on an autograd thread to the forward op that made its backward op."""

from __future__ import annotations

import numpy as np

from syncscan.model.arrays import distinct
from syncscan.model.finding import SyncPoint
from syncscan.model.names import is_engine
from syncscan.model.trace import NONE, Category, Trace


class ForwardOps:
    """Finds the forward op of a backward op: by sequence number, or by the fwdbwd arrow where there is none.

    Several ops share a sequence number: the latest-starting forward op before the backward one made the node
    (torch/csrc/profiler/collection.cpp, generateForwardBackwardLink).
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        s = trace.slices
        rows = np.flatnonzero((s.category == Category.CPU_OP) & (s.sequence != NONE) & (s.fwd_thread <= 0))
        self._rows = rows[np.lexsort((s.ts[rows], s.sequence[rows]))]
        self._sequence = s.sequence[self._rows]
        nodes = trace.named(is_engine) | ((s.sequence != NONE) & (s.fwd_thread > 0))
        self._threads = set(distinct(s.track[nodes]).tolist())
        """Tracks on which a backward pass runs: sync points elsewhere, most of them, need no look at their ops."""

    def of(self, point: SyncPoint) -> int:
        """The forward op's row for a sync point in backward, NONE for any other or where it can't be found."""
        backward = self._backward_op(point)
        if backward == NONE:
            return NONE
        found = self._by_sequence(backward)
        return found if found != NONE else self._by_flow(backward)

    def _backward_op(self, point: SyncPoint) -> int:
        if not point.ops or self.trace.slices.track.item(point.ops[0]) not in self._threads:
            return NONE
        sequence, thread = self.trace.slices.sequence.item, self.trace.slices.fwd_thread.item
        for row in point.ops:
            if sequence(row) != NONE and thread(row) > 0:
                return row
        return next((r for r in point.ops if is_engine(self.trace.name(r))), NONE)

    def _by_sequence(self, backward: int) -> int:
        s = self.trace.slices
        lo, hi = np.searchsorted(self._sequence, [s.sequence[backward], s.sequence[backward] + 1])
        if s.sequence[backward] == NONE or lo == hi:
            return NONE
        earlier = self._rows[lo:hi][s.ts[self._rows[lo:hi]] < s.ts[backward]]
        return int(earlier[-1]) if len(earlier) else NONE

    def _by_flow(self, backward: int) -> int:
        s, flows = self.trace.slices, self.trace.flows
        inside = (
            (flows.to_track == s.track[backward]) & (flows.to_ts >= s.ts[backward]) & (flows.to_ts <= s.end[backward])
        )
        for k in np.flatnonzero(inside).tolist():
            run = self.trace.track_rows(int(flows.from_track[k]))
            at = int(run.start) + int(np.searchsorted(s.ts[run], flows.from_ts[k], side="right")) - 1
            if at >= int(run.start) and s.category[at] == Category.CPU_OP:
                return at
        return NONE
