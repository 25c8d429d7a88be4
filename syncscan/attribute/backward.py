"""From a sync point on an autograd thread to the forward op that made its backward op."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from syncscan.facts.engine import nodes
from syncscan.model.arrays import Int64
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
        backward = (s.fwd_thread > 0) & (s.sequence != NONE)
        backward[nodes(trace)] = True
        self._runs = np.array([backward[trace.track_rows(track)].any() for track in range(len(trace.tracks))], np.bool_)
        """On which tracks a backward pass runs: sync points elsewhere, most of them, need no look at their ops."""

    @cached_property
    def _forward(self) -> tuple[Int64, Int64]:
        """Rows of forward ops by sequence number and begin, and these numbers."""
        s = self.trace.slices
        rows, _ = self.trace.rows_of(Category.CPU_OP)
        rows = rows[(s.sequence.take(rows) != NONE) & (s.fwd_thread.take(rows) <= 0)]
        rows = rows[np.lexsort((s.ts[rows], s.sequence[rows]))]
        return rows, s.sequence[rows]

    def of_each(self, points: Sequence[SyncPoint], outermost: Int64) -> Int64:
        """The forward op's row for each sync point in backward, NONE for any other or where it can't be found.

        Args:
            points: of the trace.
            outermost: the row of the outermost op around each, NONE without.
        """
        found = np.full(len(points), NONE, np.int64)
        for place in np.flatnonzero((outermost != NONE) & self._runs[self.trace.slices.track[outermost]]).tolist():
            found[place] = self._of(points[place])
        return found

    def _of(self, point: SyncPoint) -> int:
        backward = self._backward_op(point)
        if backward == NONE:
            return NONE
        found = self._by_sequence(backward)
        return found if found != NONE else self._by_flow(backward)

    def _backward_op(self, point: SyncPoint) -> int:
        sequence, thread = self.trace.slices.sequence.item, self.trace.slices.fwd_thread.item
        for row in point.ops:
            if sequence(row) != NONE and thread(row) > 0:
                return row
        return next((r for r in point.ops if is_engine(self.trace.name(r))), NONE)

    def _by_sequence(self, backward: int) -> int:
        s, (rows, numbers) = self.trace.slices, self._forward
        sequence = s.sequence.item(backward)
        lo, hi = numbers.searchsorted([sequence, sequence + 1]).tolist()
        if sequence == NONE or lo == hi:
            return NONE
        earlier = rows[lo:hi][s.ts[rows[lo:hi]] < s.ts[backward]]
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
