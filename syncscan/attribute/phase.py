"""From a sync point to the part of the training step that it lies in."""

from __future__ import annotations

import numpy as np

from syncscan.model.engine import node_begins
from syncscan.model.finding import Phase, SyncPoint
from syncscan.model.names import is_backward, is_loader, is_optimizer
from syncscan.model.paths import PathNames
from syncscan.model.trace import NONE, Trace

_LAST = int(np.iinfo(np.int64).max)


class Phases:
    """Tells forward, backward, optimizer, data and other apart.

    Backward and optimizer are told by autograd's and the optimizer's own ops and annotations around the call, data by
    the DataLoader's; else what lies before a step's first backward op is forward, what lies after it other.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._backward = node_begins(trace)
        self._kinds: dict[PathNames, tuple[bool, int, bool]] = {}
        self._first: dict[int, int | None] = {}
        """Begin of a step → when its first backward op begins."""

    def of(self, point: SyncPoint) -> Phase:
        """The phase of one sync point."""
        around = self._trace.paths.to(self._trace.slices.parent.item(point.calls[0]))
        if around.names not in self._kinds:
            self._kinds[around.names] = _kinds(around.names)
        backward, optimizer, loader = self._kinds[around.names]
        if backward:
            return Phase.BACKWARD
        if optimizer != NONE and not self._in_closure(around.rows[optimizer], point.ts):
            return Phase.OPTIMIZER
        return Phase.DATA if loader else self._by_time(point.ts)

    def _in_closure(self, row: int, at: int) -> bool:
        """Whether an optimizer's step runs a backward pass after this time: it lies in the closure, as in Lightning."""
        return bool(np.searchsorted(self._backward, at) < np.searchsorted(self._backward, self._trace.slices.end[row]))

    def _by_time(self, at: int) -> Phase:
        step = self._trace.last_step(at)
        begin, end = (step.ts, step.end) if step else (0, _LAST)
        if begin not in self._first:
            lo, hi = self._backward.searchsorted([begin, end]).tolist()
            self._first[begin] = self._backward.item(lo) if lo < hi else None
        first = self._first[begin]
        return Phase.OTHER if first is None or at >= first else Phase.FORWARD


def _kinds(names: PathNames) -> tuple[bool, int, bool]:
    """Whether these are of a backward pass, which of them is an optimizer's (NONE without), and whether a loader's."""
    optimizer = next((at for at, name in enumerate(names.every) if is_optimizer(name)), NONE)
    return any(map(is_backward, names.every)), optimizer, any(map(is_loader, names.every))
