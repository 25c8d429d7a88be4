"""From a trace's host slices to what happened before and after a call on its thread, as names of ops and scopes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from syncscan.facts.engine import node_begins
from syncscan.facts.nesting import innermost_that
from syncscan.model.arrays import Int32, Int64, grouped
from syncscan.model.names import is_loader, is_step, is_wrapper
from syncscan.model.trace import CALLS, DEEPEST, HOST, NONE, Category, Trace

_MOST = 64
"""How far rules can look: the longest burst of ops in sample_traces, that of printing a tensor, is 57 long."""
_RANGES = (Category.CPU_OP, Category.ANNOTATION)


class Neighbours:
    """The ops of every thread that do work themselves, in order of time, with scopes, wrappers and bare runtime calls.

    An op inside another one that does work is left out: what counts is what the program called.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        worker = trace.slices.category == int(Category.CPU_OP)
        scopes = worker | (trace.slices.category == int(Category.ANNOTATION))
        worker[trace.where(is_wrapper, Category.CPU_OP)] = False
        self._works = worker
        """Which slices are ops that do work themselves, not only hold others."""
        bare = innermost_that(worker, trace.slices.parent) == NONE
        self._before = np.flatnonzero(scopes & bare)
        self._after = np.flatnonzero((scopes | trace.is_category(*CALLS)) & bare)
        self._backward = node_begins(trace)
        self.loads = len(trace.where(is_loader, *HOST)) > 0
        """Whether a DataLoader is asked for batches in this trace."""
        self._is_step = np.zeros(len(trace.strings), np.bool_)
        ranges = (number for category in _RANGES for number in trace.names_of(category))
        self._is_step[[number for number in ranges if is_step(trace.strings[number])]] = True
        self._known_threads: dict[tuple[bool, int], _Thread] = {}

    def around_each(self, rows: Int32 | Int64) -> Arounds:
        """What goes on around some calls, as far as windows need it.

        Args:
            rows: the innermost slice around each, NONE without.
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
        """For each of some calls up to 64 ops and scopes from before it, the nearest last.

        Args:
            tracks: of the threads.
            starts: the times, ns.
            arounds: what goes on then: left out, and so is what came before a step among it.
        """
        offset, behind = np.zeros(len(tracks), np.int64), np.zeros(len(tracks), np.int64)
        for here, thread in self._threads(tracks):
            offset[here], behind[here] = thread.first, thread.first + thread.starts.searchsorted(starts[here])
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
        """For each of some times (ns) up to 64 ops, scopes and bare runtime calls that began later, the nearest first.

        What comes after a step's begin is left out.
        """
        first, behind = np.zeros(len(tracks), np.int64), np.zeros(len(tracks), np.int64)
        for here, thread in self._threads(tracks, after=True):
            at, marks = thread.starts.searchsorted(ends[here]), np.flatnonzero(self._is_step[thread.names])
            until = np.append(marks, len(thread.names))[marks.searchsorted(at)]
            first[here], behind[here] = thread.first + at, thread.first + np.minimum(at + _MOST, until)
        return Windows(self._names_after, first, behind, {})

    def texts(self, windows: Windows) -> Iterator[tuple[str, ...]]:
        """Return the names in each of these windows, one after the other: all at once they may take much memory."""
        bounds = zip(windows.first.tolist(), windows.behind.tolist(), strict=True)
        for call, (begin, end) in enumerate(bounds):
            names, left_out = self._named(windows.names[begin:end]), windows.without.get(call, ())
            yield tuple(name for at, name in enumerate(names) if at not in left_out) if left_out else names

    def _named(self, numbers: Int32) -> tuple[str, ...]:
        strings = self._trace.strings
        return tuple([strings[number] for number in numbers.tolist()])

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
        starts = self._thread(track, after=True).starts
        at = int(starts.searchsorted(end))
        return int(starts[at]) if at < len(starts) else None

    def between(self, track: int, start: int, end: int) -> tuple[str, ...]:
        """Names of the ops and scopes that began from `start` on and before `end`."""
        thread = self._thread(track)
        lo, hi = thread.starts.searchsorted([start, end]).tolist()
        return self._named(thread.names[lo:hi])

    def goes_backward(self, start: int, end: int) -> bool:
        """Whether a backward pass begins between two times, on any thread."""
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
        """Of each slice its place in `_before`, NONE of others."""
        places = np.full(len(self._trace.slices), NONE, np.int32)
        places[self._before] = np.arange(len(self._before))
        return places

    def _threads(self, tracks: Int64, *, after: bool = False) -> list[tuple[Int64, _Thread]]:
        """For each different one of these tracks where it stands among them, and its thread's slices, see `_thread`."""
        return [(here, self._thread(track, after=after)) for track, here in grouped(tracks)]

    def _thread(self, track: int, *, after: bool = False) -> _Thread:
        """The slices of a track that may come before a call, or after one; kept, as every call asks."""
        key = after, track
        if key not in self._known_threads:
            rows, run = self._after if after else self._before, self._trace.track_rows(track)
            first, behind = np.searchsorted(rows, [run.start, run.stop]).tolist()
            mine = rows[first:behind]
            self._known_threads[key] = _Thread(first, self._trace.slices.ts[mine], self._trace.slices.name[mine])
        return self._known_threads[key]


class Arounds(NamedTuple):
    """What goes on around some calls."""

    workers: Int64
    """Of each call the row of the outermost op around it that does work itself, NONE without."""
    calls: Int64
    """Of each slice around one that no op lies around that does work: which call it is around, outermost first."""
    places: Int64
    """And where it stands among those that may come before a call."""


class Windows(NamedTuple):
    """What came before some calls on their threads, or after them."""

    names: Int32
    """Numbers of the names of all that may, in order of thread and time."""
    first: Int64
    """Where the window of each call begins among these."""
    behind: Int64
    """And where it ends."""
    without: Mapping[int, Sequence[int]]
    """For some calls the places in their windows of those that don't count."""


class _Thread(NamedTuple):
    """Some rows of one thread."""

    first: int
    """The place of the first among those of all threads."""
    starts: Int64
    """When each begins, ns."""
    names: Int32
