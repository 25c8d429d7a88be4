"""Lead sync points on autograd threads to the forward op that created their backward op."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from syncscan.facts.engine import nodes
from syncscan.facts.forward_ops import forward_ops
from syncscan.model.arrays import Int64
from syncscan.model.finding import SyncPoint
from syncscan.model.slice_names import is_engine
from syncscan.model.trace import NONE, Category, Trace


class ForwardOps:
    """Finds the forward op of a backward op by sequence number, or by the fwdbwd flow without one."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        s = trace.slices
        backward = (s.fwd_thread > 0) & (s.sequence != NONE)
        backward[nodes(trace)] = True
        self._runs = np.array([backward[trace.track_rows(track)].any() for track in range(len(trace.tracks))], np.bool_)
        """Whether a backward pass runs on each track; sync points on other tracks (most) need no look-up."""

    def of_each(self, points: Sequence[SyncPoint], outermost: Int64) -> Int64:
        """Return the row of each sync point's forward op; NONE outside of backward or where it can't be found.

        Args:
            outermost: row of the outermost op around each sync point, or NONE.
        """
        forward = np.full(len(points), NONE, np.int64)
        near = np.flatnonzero((outermost != NONE) & self._runs[self.trace.slices.track[outermost]])
        backward = np.array([self._backward_op(points[place]) for place in near.tolist()], np.int64)
        near, backward = near[backward != NONE], backward[backward != NONE]
        forward[near] = forward_ops(self.trace, backward)
        for place, row in zip(near.tolist(), backward.tolist(), strict=True):
            if forward[place] == NONE:
                forward[place] = self._by_flow(row)
        return forward

    def _backward_op(self, point: SyncPoint) -> int:
        sequence, thread = self.trace.slices.sequence.item, self.trace.slices.fwd_thread.item
        for row in point.ops:
            if sequence(row) != NONE and thread(row) > 0:
                return row
        return next((r for r in point.ops if is_engine(self.trace.name(r))), NONE)

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
