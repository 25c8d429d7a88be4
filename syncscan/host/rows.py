"""From a trace's steps to the host slices of their threads, as columns: how long each takes by itself, and in all.

The threads of the steps are the one that runs them and autograd's, for which that one waits. Each moment of the steps
counts once: in the loader where the steps' thread is in one, else on an autograd thread that is in any slice, else on
the steps' thread. So the parts add up to the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from syncscan.facts.host_threads import autograd_tracks
from syncscan.facts.period import step_intervals
from syncscan.model.arrays import Bool, Int64
from syncscan.model.interval import Cover, cover_of, union
from syncscan.model.names import is_engine, is_loader
from syncscan.model.trace import CALLS, HOST, NONE, Slices, Trace, of_categories

_BEFORE_ALL = np.iinfo(np.int64).min
_NO_TIMES = np.zeros(0, np.int64)


class HostRows(msgspec.Struct, frozen=True, eq=False):
    """Ops, calls and ranges of the steps' threads; what lies in a call is part of that call.

    The columns have one entry for each slice of the trace; times are ns of the steps, each moment counted once.
    """

    slices: Slices
    counted: Bool
    """Which they are."""
    in_steps: Bool
    """Which of them begin in a step, or in the pause behind it."""
    itself: Int64
    """How long each takes without those that lie in it; 0 of the others."""
    tops: Int64
    """The rows of those that lie in no other, ascending: what follows one, up to the next, lies in it."""
    threads: tuple[slice, ...]
    """The rows of each thread, ascending."""
    steps_ns: int
    """All steps together, each from its begin to the next one's."""
    input_ns: int
    """In a DataLoader's `__next__`, with all that it does."""

    def in_all(self, rows: Int64, itself: Int64) -> Int64:
        """Return for each of these rows, which ascend, the sum of a column over it and those that lie in it.

        Args:
            rows: of these slices.
            itself: how long each slice of the trace takes without those that lie in it, ns.
        """
        behind, ts, end = rows + 1, self.slices.ts, self.slices.end[rows]
        for run in self.threads:
            own = slice(*np.searchsorted(rows, [run.start, run.stop]).tolist())
            behind[own] = np.maximum(behind[own], run.start + np.searchsorted(ts[run], end[own]))
        sums = np.append(0, np.cumsum(itself))
        total: Int64 = sums[behind] - sums[rows]
        return total


def host_rows(trace: Trace) -> HostRows:
    """The slices of a trace that marks steps."""
    s, main = trace.slices, trace.main_steps[0].track
    whole = cover_of(step_intervals(trace))
    working = whole.without(_loader(trace, main))
    own = _thread(trace, main)
    autograd = [
        thread for thread in (_thread(trace, track) for track in _autograd_tracks(trace, main)) if len(thread.tops)
    ]
    threads = [*autograd, own]
    elsewhere, since = _come_first(autograd)
    counted, in_steps = np.zeros(len(s), np.bool_), np.zeros(len(s), np.bool_)
    itself = np.zeros(len(s) + 1, np.int64)  # NONE, which is -1, is the row at the end
    covers = *[working] * len(autograd), working.without(elsewhere)
    for thread, begins, cover in zip(threads, (*since, own.begin), covers, strict=True):
        counted[thread.rows] = thread.counted
        in_steps[thread.rows] = thread.counted & whole.holds(thread.begin)
        took = cover.within(begins, thread.end) * thread.counted
        itself[thread.rows] = took
        np.subtract.at(itself, s.parent[thread.rows].astype(np.int64), took)
    np.maximum(itself, 0, out=itself)
    return HostRows(
        slices=s,
        counted=counted,
        in_steps=in_steps,
        itself=itself[:-1],
        tops=np.sort(np.concatenate([thread.rows.start + thread.tops for thread in threads])),
        threads=tuple(sorted((thread.rows for thread in threads), key=lambda rows: rows.start)),
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
    return sorted({*np.flatnonzero(runs | autograd_tracks(trace)).tolist()} - {main})


class _Thread(NamedTuple):
    """The slices of one thread."""

    rows: slice
    begin: Int64
    end: Int64
    counted: Bool
    """Which are on the host and lie in no call."""
    tops: Int64
    """The places of those of them that lie in no other."""


def _thread(trace: Trace, track: int) -> _Thread:
    """The slices of a track, and which of them count."""
    s, rows = trace.slices, trace.track_rows(track)
    begin, end, category = s.ts[rows], s.end[rows], s.category[rows]
    counted, is_call = of_categories(category, HOST), of_categories(category, CALLS)
    if (is_call[:-1] & (begin[1:] < end[:-1])).any():  # else no call holds what follows it, nor anything later
        reach = np.where(is_call, end, _BEFORE_ALL)
        reach = np.concatenate([[_BEFORE_ALL], np.maximum.accumulate(reach)[:-1]])
        counted &= ~((begin < reach) & (end <= reach))
    return _Thread(rows, begin, end, counted, np.flatnonzero(counted & (s.parent[rows] == NONE)))


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
    bounds = np.cumsum([0, *map(len, tops)]).tolist()
    since = []
    for thread, first, behind in zip(threads, bounds, bounds[1:], strict=False):
        of_each = np.diff(thread.tops[1:], prepend=0, append=len(thread.begin))
        since.append(np.maximum(thread.begin, np.repeat(taken[first:behind], of_each)))
    return elsewhere, since
