"""Find the ops and scopes before and after a call on its thread, by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from syncscan.facts.backward import node_begins
from syncscan.facts.nesting import innermost_that
from syncscan.model.arrays import Int32, Int64, grouped
from syncscan.model.slice_names import is_loader, is_step, is_wrapper
from syncscan.model.trace import CALLS, DEEPEST, HOST, NONE, Category, Trace

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
        self._works = worker
        """Which slices are ops that do work themselves, rather than only contain others."""
        bare = innermost_that(worker, trace.slices.parent) == NONE
        self._before = np.flatnonzero(scopes & bare)
        self._after = np.flatnonzero((scopes | trace.is_category(*CALLS)) & bare)
        self._backward = node_begins(trace)
        self.loads = len(trace.where(is_loader, *HOST)) > 0
        """Whether a DataLoader yields batches in this trace."""
        self._is_step = np.zeros(len(trace.strings), np.bool_)
        ranges = (number for category in _RANGES for number in trace.names_of(category))
        self._is_step[[number for number in ranges if is_step(trace.strings[number])]] = True
        self._known_threads: dict[tuple[bool, int], _ThreadRows] = {}

    def around_each(self, rows: Int32 | Int64) -> Arounds:
        """Return what is going on around some calls, as needed for windows.

        Args:
            rows: innermost slice around each call, or NONE.
        """
        workers = np.full(len(rows), NONE, np.int64)
        call, at = np.arange(len(rows)), rows
        calls: list[Int64] = []
        places: list[Int32] = []
        for _ in range(DEEPEST):
            inside = np.flatnonzero(at != NONE)
            if not len(inside):
                break
            call, at = call[inside], at[inside]
            works, place = self._works.take(at), self._places.take(at)
            workers[call[works]] = at[works]
            bare = np.flatnonzero(place != NONE)  # the others lie in ops that do work
            calls.append(call[bare])
            places.append(place[bare])
            at = self._trace.slices.parent.take(at)
        nothing = np.zeros(0, np.int64)
        return Arounds(workers, np.concatenate([nothing, *calls[::-1]]), np.concatenate([nothing, *places[::-1]]))

    def before_each(self, tracks: Int64, starts: Int64, arounds: Arounds) -> Windows:
        """Return for each call up to 64 ops and scopes before it, the nearest last.

        Args:
            tracks: tracks of the threads.
            starts: times of the calls, ns.
            arounds: what is going on then, which is left out, as is everything before a step in it.
        """
        offset, behind = np.zeros(len(tracks), np.int64), np.zeros(len(tracks), np.int64)
        for of_thread, thread in self._threads(tracks):
            offset[of_thread], behind[of_thread] = (
                thread.first,
                thread.first + thread.starts.searchsorted(starts[of_thread]),
            )
        first = np.maximum(behind - _MOST, offset)
        call, places = arounds.calls, arounds.places
        near = np.flatnonzero((places >= first[call]) & (places < behind[call]))
        call, places = call[near], places[near]
        marks = self._is_step[self._names[places]]
        np.maximum.at(first, call[marks], places[marks] + 1)
        left = np.flatnonzero(~marks & (places >= first[call]))
        without: defaultdict[int, list[int]] = defaultdict(list)
        for one, place in zip(call[left].tolist(), (places - first[call])[left].tolist(), strict=True):
            without[one].append(place)
        return Windows(self._names, first, behind, without)

    def after_each(self, tracks: Int64, ends: Int64) -> Windows:
        """Return for each time (ns) up to 64 ops, scopes and bare runtime calls that began later, the nearest first.

        Everything after a step's begin is left out.
        """
        first, behind = np.zeros(len(tracks), np.int64), np.zeros(len(tracks), np.int64)
        for of_thread, thread in self._threads(tracks, after=True):
            at, marks = thread.starts.searchsorted(ends[of_thread]), np.flatnonzero(self._is_step[thread.names])
            until = np.append(marks, len(thread.names))[marks.searchsorted(at)]
            first[of_thread], behind[of_thread] = thread.first + at, thread.first + np.minimum(at + _MOST, until)
        return Windows(self._names_after, first, behind, {})

    def texts(self, windows: Windows) -> Iterator[tuple[str, ...]]:
        """Yield the names in each window, one after another, since all at once may take much memory."""
        bounds = zip(windows.first.tolist(), windows.behind.tolist(), strict=True)
        for call, (begin, end) in enumerate(bounds):
            names, left_out = self._named(windows.names[begin:end]), windows.without.get(call, ())
            yield tuple(name for at, name in enumerate(names) if at not in left_out) if left_out else names

    def _named(self, numbers: Int32) -> tuple[str, ...]:
        strings = self._trace.strings
        return tuple([strings[number] for number in numbers.tolist()])

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
        starts = self._thread(track, after=True).starts
        at = int(starts.searchsorted(end))
        return int(starts[at]) if at < len(starts) else None

    def between(self, track: int, start: int, end: int) -> tuple[str, ...]:
        """Return the names of the ops and scopes that began in [start, end)."""
        thread = self._thread(track)
        lo, hi = thread.starts.searchsorted([start, end]).tolist()
        return self._named(thread.names[lo:hi])

    def goes_backward(self, start: int, end: int) -> bool:
        """Return whether a backward pass begins between two times, on any thread."""
        lo, hi = np.searchsorted(self._backward, [start, end])
        return bool(lo < hi)

    @cached_property
    def _names(self) -> Int32:
        return self._trace.slices.name.take(self._before)

    @cached_property
    def _names_after(self) -> Int32:
        return self._trace.slices.name.take(self._after)

    @cached_property
    def _places(self) -> Int32:
        """Index of each slice in `_before`, NONE for others."""
        places = np.full(len(self._trace.slices), NONE, np.int32)
        places[self._before] = np.arange(len(self._before))
        return places

    def _threads(self, tracks: Int64, *, after: bool = False) -> list[tuple[Int64, _ThreadRows]]:
        """Return for each distinct track the indices of its entries, and its thread's slices; see `_thread`."""
        return [(places, self._thread(track, after=after)) for track, places in grouped(tracks)]

    def _thread(self, track: int, *, after: bool = False) -> _ThreadRows:
        """Return the slices of a track that may come before or after a call; cached, as every call needs them."""
        key = after, track
        if key not in self._known_threads:
            rows, run = self._after if after else self._before, self._trace.track_rows(track)
            first, behind = np.searchsorted(rows, [run.start, run.stop]).tolist()
            own = rows[first:behind]
            self._known_threads[key] = _ThreadRows(first, self._trace.slices.ts[own], self._trace.slices.name[own])
        return self._known_threads[key]


class Arounds(NamedTuple):
    """The slices around some calls."""

    workers: Int64
    """Row of the outermost op around each call that does work itself, or NONE."""
    calls: Int64
    """For each slice around a call outside of any op that does work, the index of the call, outermost slices first."""
    places: Int64
    """The slice's index among those that may come before a call."""


class Windows(NamedTuple):
    """Names before or after some calls on their threads."""

    names: Int32
    """Name numbers of all slices that may be in a window, ordered by thread and time."""
    first: Int64
    """Begin of each call's window in `names`."""
    behind: Int64
    """End of each call's window in `names`."""
    without: Mapping[int, Sequence[int]]
    """For some calls, the indices in their windows of slices that don't count."""


class _ThreadRows(NamedTuple):
    """Some rows of one thread."""

    first: int
    """Index of the first one among those of all threads."""
    starts: Int64
    """When each begins, ns."""
    names: Int32
