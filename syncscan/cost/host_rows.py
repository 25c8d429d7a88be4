"""From a trace's steps to the host slices of their threads, as columns: how long each takes by itself, and in all.

The threads of the steps are the one that runs them and autograd's, for which that one waits. Each moment of the steps
counts once: in the loader where the steps' thread is in one, else on an autograd thread that is in any slice, else on
the steps' thread. So the parts add up to the steps.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from syncscan.model.arrays import Bool, Int64
from syncscan.model.interval import Cover, cover_of, union
from syncscan.model.names import is_autograd_thread, is_engine, is_loader
from syncscan.model.period import step_intervals
from syncscan.model.trace import CALLS, HOST, NONE, Slices, Trace

_BEFORE_ALL = np.iinfo(np.int64).min
_NO_TIMES = np.zeros(0, np.int64)


class HostRows(msgspec.Struct, frozen=True, eq=False):
    """Ops, calls and ranges of the steps' threads, in the trace's order; what lies in a call is part of that call.

    The columns have one length; times are ns of the steps, each moment counted once.
    """

    slices: Slices
    rows: Int64
    in_steps: Bool
    """Which begin in a step, or in the pause behind it."""
    itself: Int64
    """How long each takes without those that lie in it."""
    tops: Int64
    """The places of those that lie in no other, ascending: what follows one, up to the next, lies in it."""
    threads: Int64
    """The place of each thread's first row, and behind the last thread's last."""
    steps_ns: int
    """All steps together, each from its begin to the next one's."""
    input_ns: int
    """In a DataLoader's `__next__`, with all that it does."""

    def top_of(self, places: Int64) -> Int64:
        """For each of these places the place in `tops` of the outermost around it, or of itself."""
        tops = np.repeat(np.arange(len(self.tops)), np.diff(self.tops, append=len(self.rows)))
        return tops.take(places)

    def in_all(self, column: Int64, places: Int64) -> Int64:
        """Of each of these places, which ascend, the sum of a column over itself and those that lie in it."""
        sums = np.zeros(len(column) + 1, np.int64)
        np.cumsum(column, out=sums[1:])
        last = places + 1
        for first, behind in itertools.pairwise(self.threads.tolist()):
            mine, rows = slice(*np.searchsorted(places, [first, behind]).tolist()), self.rows[first:behind]
            if mine.start < mine.stop:
                run = slice(int(rows[0]), int(rows[-1]) + 1)
                until = run.start + np.searchsorted(self.slices.ts[run], self.slices.end[self.rows[places[mine]]])
                whole = len(rows) == run.stop - run.start
                reached = until - run.start if whole else np.searchsorted(rows, until)
                last[mine] = np.maximum(last[mine], first + reached)
        total: Int64 = sums[last] - sums[places]
        return total

    def places_of(self, rows: Int64) -> Int64:
        """The places of these rows, NONE for others."""
        places = np.full(len(rows), NONE, np.int64)
        for first, behind in itertools.pairwise(self.threads.tolist()):
            at = first + np.searchsorted(self.rows[first:behind], rows)
            mine = np.flatnonzero(at < behind)
            mine = mine[self.rows[at[mine]] == rows[mine]]
            places[mine] = at[mine]
        return places


def host_rows(trace: Trace) -> HostRows:
    """The slices of a trace that marks steps."""
    main = trace.main_steps[0].track
    whole = cover_of(step_intervals(trace))
    working = whole.without(_loader(trace, main))
    calls, host = trace.is_category(*CALLS), trace.is_category(*HOST)
    *autograd, own = each = [_thread(trace, track, calls, host) for track in (*_autograd_tracks(trace, main), main)]
    elsewhere, since = _come_first(autograd)
    took = [working.within(begin, thread.end) for begin, thread in zip(since, autograd, strict=True)]
    took.append(working.without(elsewhere).within(own.begin, own.end))
    threads = np.cumsum([0, *(len(thread.rows) for thread in each)])
    return HostRows(
        slices=trace.slices,
        rows=np.concatenate([thread.rows for thread in each]),
        in_steps=np.concatenate([whole.holds_ascending(thread.begin) for thread in each]),
        itself=np.concatenate([thread.itself(ns) for thread, ns in zip(each, took, strict=True)]),
        tops=np.concatenate([first + thread.tops for first, thread in zip(threads.tolist(), each, strict=False)]),
        threads=threads,
        steps_ns=whole.length,
        input_ns=whole.length - working.length,
    )


def _loader(trace: Trace, main: int) -> Cover:
    """When the steps' thread was in a DataLoader's `__next__`."""
    s, rows = trace.slices, trace.where(is_loader, *HOST)
    rows = rows[s.track[rows] == main]
    return Cover(*union(s.ts[rows], s.end[rows]))


def _autograd_tracks(trace: Trace, main: int) -> list[int]:
    """The tracks of autograd's threads: they are called so, or its engine runs there."""
    runs = np.zeros(len(trace.tracks), np.bool_)
    runs[trace.slices.track[trace.where(is_engine, *HOST)]] = True
    called = (number for number, track in enumerate(trace.tracks) if is_autograd_thread(track.thread))
    return sorted({*called, *np.flatnonzero(runs).tolist()} - {main})


class _Thread(NamedTuple):
    """Columns of the slices of one thread."""

    rows: Int64
    begin: Int64
    end: Int64
    around: Int64
    """The place of the innermost around each, NONE without."""

    @property
    def tops(self) -> Int64:
        """The places of those that lie in no other."""
        return np.flatnonzero(self.around == NONE)

    def itself(self, took: Int64) -> Int64:
        """How long each takes without those that lie in it, by how long it takes in all; that column is used up."""
        inner = np.zeros(len(took) + 1, np.int64)  # NONE, which is -1, is the place at the end
        np.add.at(inner, self.around, took)
        took -= inner[:-1]
        return np.maximum(took, 0, out=took)


def _thread(trace: Trace, track: int, calls: Bool, host: Bool) -> _Thread:
    """The host slices of a track that lie in no call.

    Args:
        trace, track: of them.
        calls, host: masks over all slices.
    """
    s, run = trace.slices, trace.track_rows(track)
    begin, end, kept = s.ts[run], s.end[run], host[run]
    called = np.flatnonzero(calls[run][:-1])
    if (begin[called + 1] < end[called]).any():  # else no call holds what begins right behind it, nor anything later
        reach = np.where(calls[run], end, _BEFORE_ALL)
        reach = np.concatenate([[_BEFORE_ALL], np.maximum.accumulate(reach)[:-1]])
        kept = kept & ~((begin < reach) & (end <= reach))
    around = np.subtract(s.parent[run], run.start, dtype=np.int64)
    around[s.parent[run] == NONE] = NONE
    if kept.all():
        return _Thread(np.arange(run.start, run.stop), begin, end, around)
    mine = np.flatnonzero(kept)
    place = np.full(len(begin) + 1, NONE, np.int64)
    place[mine] = np.arange(len(mine))
    return _Thread(run.start + mine, begin[mine], end[mine], place.take(around[mine]))


def _come_first(threads: Sequence[_Thread]) -> tuple[Cover, list[Int64]]:
    """When any of autograd's threads is in a slice, and of each thread from when on its slices count.

    Where several of them work at once, the one that came first counts.
    """
    tops = [thread.tops for thread in threads]
    begins = np.concatenate([_NO_TIMES, *(thread.begin[mine] for thread, mine in zip(threads, tops, strict=True))])
    ends = np.concatenate([_NO_TIMES, *(thread.end[mine] for thread, mine in zip(threads, tops, strict=True))])
    order = np.argsort(begins, kind="stable")
    elsewhere = Cover(*union(begins[order], ends[order]))
    taken = np.full(len(order), _BEFORE_ALL, np.int64)
    taken[order[1:]] = np.maximum.accumulate(ends[order])[:-1]
    if (taken <= begins).all():  # one thread, or each in its turn
        return elsewhere, [thread.begin for thread in threads]
    bounds = itertools.pairwise(np.cumsum([0, *map(len, tops)]).tolist())
    since = [
        np.maximum(thread.begin, np.repeat(taken[slice(*of_thread)], np.diff(mine, append=len(thread.rows))))
        for thread, mine, of_thread in zip(threads, tops, bounds, strict=True)
    ]
    return elsewhere, since
