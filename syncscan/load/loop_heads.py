"""Find where a program's loop begins, and each of its rounds, in a repeating sequence of calls.

A loop takes its batch before it launches anything. So of all calls at which a round could begin, the one after a loader
is the first, and the round begins with that loader. Without a loader, it begins with the ranges that always precede its
first call.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from syncscan.model.arrays import Bool, Int64, median
from syncscan.model.slice_names import is_loader, is_optimizer
from syncscan.model.trace import DEEPEST, HOST, NONE, Trace

LONGEST_HEAD = 64
"""Number of ranges before a round's first call to compare."""


class LoopHeads:
    """The slices of a thread around the calls that start work or wait for it.

    Args:
        trace: trace with the thread.
        outermost: row of the outermost slice around each of these calls, in order, or the call's own.
    """

    def __init__(self, trace: Trace, outermost: Int64) -> None:
        self.trace, self.outermost = trace, outermost
        s, track = trace.slices, trace.slices.track.item(int(outermost[0]))
        run = trace.track_rows(track)
        rows = np.arange(run.start, run.stop)
        self.tops = rows[s.parent[run] == NONE]
        self.at = np.searchsorted(self.tops, outermost)
        """Index of each call's outermost slice among those of the thread."""
        self.before = np.concatenate([[NONE], self.at[:-1]])
        """Index of the previous call's outermost slice."""
        self._loaders = self._around(is_loader)
        self._optimizers = self._around(is_optimizer)
        self._loading = self._hold_loaders()

    def _around(self, wanted: Callable[[str], bool]) -> Int64:
        """Return, for each outermost slice, how many slices before it are or contain such ranges."""
        s = self.trace.slices
        rows = self.trace.where(wanted, *HOST)
        rows = rows[s.track[rows] == s.track[self.outermost[0]]]
        hold = np.zeros(len(self.tops), np.int64)
        hold[np.searchsorted(self.tops, outermost_of(self.trace, rows))] = 1
        return np.concatenate([[0], np.cumsum(hold)])

    def _hold_loaders(self) -> Bool:
        """Return which calls have a loader around or before them, after the previous call."""
        first = np.where(self.before == self.at, self.at, self.before + 1)
        held: Bool = self._loaders[self.at + 1] > self._loaders[first]
        return held

    def best_begin(self, possible: Sequence[int], last: int, length: int) -> int:
        """Return the call at which the loop begins, among those at which rounds of this length can begin.

        Args:
            possible: indices of calls, ascending, less than a round apart.
            last: index after the last call of the rounds.
            length: number of calls per round.
        """
        loading = [begin for begin in possible if self._loading[begin + length : last : length].all()]
        for previous, begin in zip([loading[-1] - length, *loading] if loading else [], loading, strict=False):
            passed = slice(self.at[max(previous, 0)], self.at[begin])
            if self._optimizers[passed.stop] > self._optimizers[passed.start]:
                return begin
        return (loading or possible)[0]

    def bounds(self, begin: int, count: int, length: int) -> tuple[int, ...]:
        """Return when each whole round begins and, last, when the last one ends, ns.

        The first round is left out if its loader ran before the recording began.

        Args:
            begin: index of the first round's first call.
            count: number of rounds.
            length: number of calls per round.
        """
        first = begin + length * np.arange(count)
        loads = bool(self._loading[first[1:]].all())
        if loads and count > 2 and not self._loading[begin]:
            first = first[1:]
        begins = self._behind_loaders(first) if loads else self._behind_heads(first)
        return (*begins.tolist(), self._over(begins, begin + count * length, loads))

    def lie_in_rounds(self, begin: int, count: int, length: int) -> bool:
        """Return whether loaders and optimizers, if there are several, are in every round; else it is an inner loop.

        Args:
            begin, count, length: see `bounds`.
        """
        marks = self._loaders + self._optimizers
        if marks[-1] < 2:
            return True
        edges = begin + length * np.arange(1, count)
        until = np.append(self.before[edges] + 1, self.at[begin + length * count - 1] + 1)
        return bool((np.diff(marks[until]) > 0).all())  # the first round's loader may be from before the recording

    def _behind_loaders(self, calls: Int64) -> Int64:
        """Return when the first loader before or around each call begins, else the call's own outermost slice."""
        s = self.trace.slices
        places = np.searchsorted(self._loaders, self._loaders[self.before[calls] + 1] + 1) - 1
        begins: Int64 = s.ts[self.tops[np.where(self._loading[calls], places, self.at[calls])]]
        return begins

    def _behind_heads(self, calls: Int64) -> Int64:
        """Return when the ranges begin that precede each of these calls with the same names."""
        s, at = self.trace.slices, self.at[calls]
        most = min(int((at - self.before[calls]).min()) - 1, LONGEST_HEAD)
        names = s.name[self.tops]
        alike = (len(np.unique(names[at - back])) == 1 for back in range(1, most + 1))
        begins: Int64 = s.ts[self.tops[at - sum(itertools.takewhile(bool, alike))]]
        return begins

    def _over(self, begins: Int64, end: int, loads: bool) -> int:
        """Return when the last round ends: when the next one begins, else after the usual time, or with its calls."""
        s, last = self.trace.slices, self.outermost[end - 1]
        usual = begins.item(-1) + (int(median(np.diff(begins))) if len(begins) > 1 else 0)
        over = max(int(s.end[last]), usual)
        if loads:
            behind = self._loaders[self.at[end - 1] + 1]
            if behind < self._loaders[-1]:
                return min(over, int(s.ts[self.tops[np.searchsorted(self._loaders, behind + 1) - 1]]))
        return over if end == len(self.outermost) else min(over, int(s.ts[self.outermost[end]]))


def outermost_of(trace: Trace, rows: Int64) -> Int64:
    """Return the outermost slice around each of these rows, or the row itself."""
    parent, at = trace.slices.parent, rows.astype(np.int64)
    for _ in range(DEEPEST):
        up = parent[at]
        if not (up != NONE).any():
            break
        at = np.where(up != NONE, up, at)
    return at
