"""From a trace's host slices to what happened before and after a call on its thread, as names of ops and scopes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from syncscan.model.arrays import Bool, Int32, Int64
from syncscan.model.engine import node_begins
from syncscan.model.names import is_loader, is_step, is_wrapper
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
        worker = trace.slices.category == int(Category.CPU_OP)
        scopes = worker | (trace.slices.category == int(Category.ANNOTATION))
        worker[trace.where(is_wrapper, Category.CPU_OP)] = False
        bare = ~_covered(trace.slices.parent, worker)
        self._before = np.flatnonzero(scopes & bare)
        self._after = np.flatnonzero((scopes | trace.is_category(*CALLS)) & bare)
        self._backward = node_begins(trace)
        self.loads = bool(trace.named(is_loader).any())
        """Whether a DataLoader is asked for batches in this trace."""
        self._is_step = trace.names_that(is_step)
        self._tracks: dict[tuple[int, int], _Thread] = {}
        self._known: dict[tuple[bytes, tuple[int, ...]], tuple[str, ...]] = {}

    def before(self, track: int, ts: int, around: Sequence[int]) -> tuple[str, ...]:
        """Names of up to 64 ops and scopes from before this time, the nearest last.

        Args:
            track: of the thread.
            ts: the time, ns.
            around: rows of what goes on then, outermost first: left out, and so is what came before a step
                among them.
        """
        thread = self._on(self._before, track)
        behind = int(thread.starts.searchsorted(ts))
        first, left_out = max(0, behind - _MOST), []
        for row in reversed(around):
            place = self._places.item(row) - thread.first
            if 0 <= place < first:
                break
            if place < 0 or place >= behind:  # it lies in an op that does work, or begins later
                continue
            if self._is_step.item(thread.names.item(place)):
                first = place + 1
                break
            left_out.append(place)
        return self._texts(thread.names[first:behind], tuple([place - first for place in left_out]))

    def after(self, track: int, end: int) -> tuple[str, ...]:
        """Names of up to 64 ops, scopes and bare runtime calls that began after this time, the nearest first."""
        thread = self._on(self._after, track)
        at = int(thread.starts.searchsorted(end))
        called = thread.names[at : at + _MOST]
        steps = self._is_step[called]
        return self._texts(called[: int(steps.argmax())] if steps.any() else called)

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
        starts = self._on(self._after, track).starts
        at = int(starts.searchsorted(end))
        return int(starts[at]) if at < len(starts) else None

    def between(self, track: int, start: int, end: int) -> tuple[str, ...]:
        """Names of the ops and scopes that began from `start` on and before `end`."""
        thread = self._on(self._before, track)
        lo, hi = np.searchsorted(thread.starts, [start, end])
        return self._texts(thread.names[int(lo) : int(hi)])

    def goes_backward(self, start: int, end: int) -> bool:
        """Whether a backward pass begins between two times, on any thread."""
        lo, hi = np.searchsorted(self._backward, [start, end])
        return bool(lo < hi)

    def _texts(self, names: Int32, without: tuple[int, ...] = ()) -> tuple[str, ...]:
        """The names of these numbers but for those at some places, descending.

        To find them by the numbers' bytes takes a tenth of making them.
        """
        key = (names.tobytes(), without)
        known = self._known.get(key)
        if known is None:
            numbers = names.tolist()
            for place in without:
                del numbers[place]
            known = tuple([self._trace.strings[number] for number in numbers])
            if len(self._known) < _KEPT:
                self._known[key] = known
        return known

    @cached_property
    def _places(self) -> Int32:
        """Of each slice its place in `_before`, NONE of others."""
        places = np.full(len(self._trace.slices), NONE, np.int32)
        places[self._before] = np.arange(len(self._before))
        return places

    def _on(self, rows: Int64, track: int) -> _Thread:
        """Those of these rows that lie on a track; kept, as every call asks."""
        key = (id(rows), track)
        if key not in self._tracks:
            run = self._trace.track_rows(track)
            first, behind = np.searchsorted(rows, [run.start, run.stop]).tolist()
            mine = rows[first:behind]
            self._tracks[key] = _Thread(first, self._trace.slices.ts[mine], self._trace.slices.name[mine])
        return self._tracks[key]


class _Thread(NamedTuple):
    """Some rows of one thread."""

    first: int
    """The place of the first among those of all threads."""
    starts: Int64
    """When each begins, ns."""
    names: Int32


def _covered(parent: Int32, worker: Bool) -> Bool:
    """For each row, whether an op that does work is around it.

    Nearly always it is the innermost op around it, or none is. What is left lies in scopes: each round doubles how many
    of them are looked through.
    """
    inside = np.flatnonzero(parent != NONE)
    up = parent.take(inside)
    covered = np.zeros(len(parent), np.bool_)
    covered[inside] = worker.take(up)
    open_ = ~covered.take(inside)
    inside, up = inside[open_], up[open_]  # each in a row that does no work itself: it is covered if that is
    outwards = np.full(len(parent), NONE, np.int32)
    outwards[inside] = up
    while len(inside):
        covered[inside] = covered[up]
        left = ~covered[inside] & (outwards[up] != NONE)
        inside = inside[left]
        outwards[inside] = up = outwards[up[left]]
    return covered
