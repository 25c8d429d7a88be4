"""Find the ops and scopes before and after a call on its thread, by name."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import takewhile

import numpy as np

from syncscan.facts.autograd import node_begins
from syncscan.facts.paths import Path, innermost_that
from syncscan.model.arrays import Int32, Int64
from syncscan.model.slice_names import is_loader, is_step, is_wrapper
from syncscan.model.trace import CALLS, HOST, NONE, Category, Trace

_MOST = 64
"""How far rules can look: the longest burst of ops in sample_traces, for printing a tensor, is 57 long."""
_RANGES = (Category.CPU_OP, Category.ANNOTATION)


class Neighbours:
    """Each thread's ops that do work themselves, in time order, with scopes, wrappers and bare runtime calls.

    An op inside another one that does work is left out; what the program called counts.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        worker = trace.slices.category == int(Category.CPU_OP)
        scopes = worker | (trace.slices.category == int(Category.ANNOTATION))
        worker[trace.where(is_wrapper, Category.CPU_OP)] = False
        bare = innermost_that(worker, trace.slices.parent) == NONE
        self._before = np.flatnonzero(scopes & bare)
        self._after = np.flatnonzero((scopes | trace.is_category(*CALLS)) & bare)
        self._backward = node_begins(trace)
        self.loads = len(trace.where(is_loader, *HOST)) > 0
        """Whether a DataLoader yields batches in this trace."""
        ranges = (number for category in _RANGES for number in trace.names_of(category))
        self._steps = frozenset(number for number in ranges if is_step(trace.strings[number]))
        self._known_threads: dict[tuple[bool, int], tuple[Int64, Int64, Int32]] = {}

    def before(self, track: int, start: int, path: Path) -> tuple[str, ...]:
        """Return up to 64 ops and scopes that began before a time (ns) on a thread, the nearest last.

        The slices of `path`, which are going on then, are left out, and so is everything before a step among them.
        """
        (rows, starts, all_names), around, names = self._thread(track), {*path.rows}, list[int]()
        behind = int(starts.searchsorted(start))
        near = slice(max(behind - _MOST, 0), behind)
        for row, name in zip(rows[near].tolist(), all_names[near].tolist(), strict=True):
            if row not in around:
                names.append(name)
            elif name in self._steps:
                names.clear()
        return self._texts(names)

    def after(self, track: int, end: int) -> tuple[str, ...]:
        """Return up to 64 ops, scopes and bare runtime calls that began later (ns), the nearest first; up to a step."""
        _, starts, names = self._thread(track, after=True)
        at = int(starts.searchsorted(end))
        return self._texts(takewhile(lambda name: name not in self._steps, names[at : at + _MOST].tolist()))

    def _texts(self, names: Iterable[int]) -> tuple[str, ...]:
        strings = self._trace.strings
        return tuple([strings[name] for name in names])

    @cached_property
    def first_begins(self) -> dict[str, int]:
        """Name of each op → when it first began on any thread."""
        slices = self._trace.slices
        ops = np.flatnonzero(slices.category == int(Category.CPU_OP))
        names, first = np.unique(slices.name[ops[np.argsort(slices.ts[ops], kind="stable")]], return_index=True)
        begins = np.sort(slices.ts[ops])[first]
        return {self._trace.strings[name]: ts for name, ts in zip(names.tolist(), begins.tolist(), strict=True)}

    def next_start(self, track: int, end: int) -> int | None:
        """Return when the next op, scope or bare runtime call begins; None after the last."""
        _, starts, _ = self._thread(track, after=True)
        at = int(starts.searchsorted(end))
        return int(starts[at]) if at < len(starts) else None

    def between(self, track: int, start: int, end: int) -> tuple[str, ...]:
        _, starts, names = self._thread(track)
        lo, hi = starts.searchsorted([start, end]).tolist()
        return self._texts(names[lo:hi].tolist())

    def goes_backward(self, start: int, end: int) -> bool:
        """Return whether a backward pass begins between two times, on any thread."""
        lo, hi = np.searchsorted(self._backward, [start, end])
        return bool(lo < hi)

    def _thread(self, track: int, *, after: bool = False) -> tuple[Int64, Int64, Int32]:
        """Return rows, begins (ns) and names of a track's slices that may come before or after a call; cached."""
        key = after, track
        if key not in self._known_threads:
            rows, run = self._after if after else self._before, self._trace.track_rows(track)
            own = rows[slice(*np.searchsorted(rows, [run.start, run.stop]).tolist())]
            self._known_threads[key] = own, self._trace.slices.ts[own], self._trace.slices.name[own]
        return self._known_threads[key]
