"""Decide which part of the training step a sync point lies in, and lead one in backward to its forward op."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from syncscan.facts.autograd import forward_ops, node_begins, nodes
from syncscan.facts.paths import Path, PathNames
from syncscan.model.arrays import Int64
from syncscan.model.finding import Phase, SyncPoint
from syncscan.model.slice_names import is_backward, is_engine, is_loader, is_optimizer
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
        """Return the row of each sync point's forward op; NONE outside of backward or where it can't be found."""
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


_LAST = int(np.iinfo(np.int64).max)


class Phases:
    """Distinguishes forward, backward, optimizer, data and other.

    Ops and annotations of autograd, of the optimizer and of the DataLoader around a call decide. Without them, what
    comes before a step's first backward op is forward, and what comes after it is other.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._backward = node_begins(trace)
        self._kinds: dict[PathNames, tuple[bool, int, bool]] = {}

    def of_each(self, times: Int64, paths: Sequence[Path]) -> list[Phase]:
        """Return the phase of each sync point, from its begin (ns) and the path of its first call."""
        return list(map(self._of, times.tolist(), paths, self._by_time(times)))

    def _of(self, time: int, around: Path, by_time: Phase) -> Phase:
        kinds = self._kinds.get(around.names)
        if kinds is None:
            kinds = self._kinds[around.names] = _kinds(around.names)
        backward, optimizer, loader = kinds
        if backward:
            return Phase.BACKWARD
        if optimizer != NONE and not self._in_closure(around.rows[optimizer], time):
            return Phase.OPTIMIZER
        return Phase.DATA if loader else by_time

    def _in_closure(self, row: int, at: int) -> bool:
        """Return whether an optimizer's step runs backward after this time: in its closure, as in Lightning."""
        return bool(np.searchsorted(self._backward, at) < np.searchsorted(self._backward, self._trace.slices.end[row]))

    def _by_time(self, times: Int64) -> list[Phase]:
        """Return the phase by time alone: forward before the first backward op of the step, else other."""
        steps = self._trace.last_steps(times)
        # NONE is -1 and so indexes the last place.
        begin = np.array([*(step.ts for step in self._trace.steps), 0], np.int64)[steps]
        end = np.array([*(step.end for step in self._trace.steps), _LAST], np.int64)[steps]
        nodes = np.append(self._backward, _LAST)
        first = nodes[nodes.searchsorted(begin)]
        forward = (times < first) & (first < end)
        return [Phase.FORWARD if before else Phase.OTHER for before in forward.tolist()]


def _kinds(names: PathNames) -> tuple[bool, int, bool]:
    """Return whether a name is of backward, which is an optimizer's (or NONE), whether one is a loader's."""
    optimizer = next((at for at, name in enumerate(names.every) if is_optimizer(name)), NONE)
    return any(map(is_backward, names.every)), optimizer, any(map(is_loader, names.every))
