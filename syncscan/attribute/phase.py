"""Decide which part of the training step a sync point lies in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from syncscan.facts.engine import node_begins
from syncscan.facts.paths import Path, PathNames
from syncscan.model.arrays import Int64
from syncscan.model.finding import Phase
from syncscan.model.slice_names import is_backward, is_loader, is_optimizer
from syncscan.model.trace import NONE, Trace

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
        """Return the phase of each sync point.

        Args:
            times: their begins, ns.
            paths: the chain of ops and scopes around each sync point's first call.
        """
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
