"""From a trace's host slices to what happened before and after a call on its thread, as names of ops and scopes."""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property

import numpy as np

from syncscan.model.arrays import Bool, Int32, Int64
from syncscan.model.names import is_engine, is_loader, is_step, is_wrapper
from syncscan.model.recorded_stacks import RecordedStacks
from syncscan.model.trace import CALLS, NONE, Category, Trace

_MOST = 64
"""How far rules can look: the longest burst of ops in sample_traces, that of printing a tensor, is 57 long."""
_KEPT = 1 << 12
"""Lists of names that are kept at most, of about a kilobyte: those that come again come again soon."""


class Neighbours:
    """The ops of every thread that do work themselves, in order of time, with scopes, wrappers and bare runtime calls.

    An op inside another one that does work is left out: what counts is what the program called.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.stacks = trace.kept(RecordedStacks)
        """What capture recorded of the calls themselves."""
        category = trace.slices.category
        op = category == int(Category.CPU_OP)
        covered = _covered(trace.slices.parent, op & ~trace.named(is_wrapper))
        scopes = op | (category == int(Category.ANNOTATION))
        calls = trace.is_category(*CALLS)
        self._before = np.flatnonzero(scopes & ~covered)
        self._after = np.flatnonzero((scopes | calls) & ~covered)
        self._backward = np.sort(trace.slices.ts[trace.named(is_engine)])
        self.loads = bool(trace.named(is_loader).any())
        """Whether a DataLoader is asked for batches in this trace."""
        self._steps = trace.named(is_step)
        self._tracks: dict[tuple[int, int], tuple[Int64, Int64, Int32]] = {}
        self._known: dict[tuple[int, ...], tuple[str, ...]] = {}

    def before(self, track: int, ts: int, around: set[int]) -> tuple[str, ...]:
        """Names of up to 64 ops and scopes from before this time, the nearest last; those `around` are left out."""
        rows, starts, names = self._on(self._before, track)
        at = int(starts.searchsorted(ts))
        window = slice(max(0, at - _MOST), at)
        nearest, called = rows[window].tolist(), names[window].tolist()
        for row in sorted(around.intersection(nearest), reverse=True):
            at = bisect_left(nearest, row)
            del called[at]
            if is_step(self._trace.name(row)):
                del called[:at]
                break
        return self._texts(called)

    def after(self, track: int, end: int) -> tuple[str, ...]:
        """Names of up to 64 ops, scopes and bare runtime calls that began after this time, the nearest first."""
        rows, starts, names = self._on(self._after, track)
        at = int(starts.searchsorted(end))
        steps = self._steps[rows[at : at + _MOST]]
        called = names[at : at + _MOST]
        return self._texts(called[: int(steps.argmax())].tolist() if steps.any() else called.tolist())

    @cached_property
    def first_begins(self) -> dict[str, int]:
        """Name of each op → when it began for the first time on any thread."""
        slices = self._trace.slices
        ops = np.flatnonzero(slices.category == int(Category.CPU_OP))
        names, first = np.unique(slices.name[ops[np.argsort(slices.ts[ops], kind="stable")]], return_index=True)
        begins = np.sort(slices.ts[ops])[first]
        return {self._trace.strings[name]: ts for name, ts in zip(names.tolist(), begins.tolist(), strict=True)}

    def next_start(self, track: int, end: int) -> int | None:
        """When the next op, scope or bare runtime call begins; None after the last."""
        _, starts, _ = self._on(self._after, track)
        at = int(starts.searchsorted(end))
        return int(starts[at]) if at < len(starts) else None

    def between(self, track: int, start: int, end: int) -> tuple[str, ...]:
        """Names of the ops and scopes that began from `start` on and before `end`."""
        _, starts, names = self._on(self._before, track)
        lo, hi = np.searchsorted(starts, [start, end])
        return self._texts(names[int(lo) : int(hi)].tolist())

    def goes_backward(self, start: int, end: int) -> bool:
        """Whether a backward pass begins between two times, on any thread."""
        lo, hi = np.searchsorted(self._backward, [start, end])
        return bool(lo < hi)

    def _texts(self, names: list[int]) -> tuple[str, ...]:
        """The names of these numbers: one object for equal ones, which then needs no comparing."""
        key = tuple(names)
        known = self._known.get(key)
        if known is None:
            known = tuple([self._trace.strings[number] for number in names])
            if len(self._known) < _KEPT:
                self._known[key] = known
        return known

    def _on(self, rows: Int64, track: int) -> tuple[Int64, Int64, Int32]:
        """Those of these rows that lie on a track, when they begin, and their names; kept, as every call asks."""
        key = (id(rows), track)
        if key not in self._tracks:
            run = self._trace.track_rows(track)
            lo, hi = np.searchsorted(rows, [run.start, run.stop])
            mine = rows[int(lo) : int(hi)]
            self._tracks[key] = (mine, self._trace.slices.ts[mine], self._trace.slices.name[mine])
        return self._tracks[key]


def _covered(parent: Int32, worker: Bool) -> Bool:
    """For each row, whether an op that does work is around it; each round doubles how many levels up are looked at."""
    inside = np.flatnonzero(parent != NONE)
    up, covered = parent.astype(np.int64), np.zeros(len(parent), np.bool_)
    covered[inside] = worker[up[inside]]
    while len(inside):
        covered[inside] |= covered[up[inside]]
        up[inside] = up[up[inside]]
        inside = inside[up[inside] != NONE]
    return covered
