"""Build columns of the host slices on the threads of the steps: own time, and total time.

These threads are the one that runs the steps and autograd's, for which it waits. Each moment of the steps counts once:
in the loader if the steps' thread is in one, else on an autograd thread that is in any slice, else on the steps'
thread. So the parts add up to the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from syncscan.facts.autograd import autograd_tracks
from syncscan.facts.period import step_intervals
from syncscan.model.arrays import Bool, Int64
from syncscan.model.interval import Cover, cover_of, union
from syncscan.model.slice_names import is_engine, is_loader
from syncscan.model.trace import CALLS, HOST, NONE, Category, Slices, Trace, of_categories

_BEFORE_ALL = np.iinfo(np.int64).min
_NO_TIMES = np.zeros(0, np.int64)


class HostRows(msgspec.Struct, frozen=True, eq=False):
    """Ops, calls and ranges on the threads of the steps; slices inside a call are part of that call.

    Columns have one entry per slice of the trace. Times are in ns, and each moment of the steps counts once.
    """

    slices: Slices
    counted: Bool
    """Whether the slice counts: so do calls of the OS, on autograd's threads those in ops."""
    in_steps: Bool
    """Whether it counts and begins in a step, or in the pause after one."""
    itself: Int64
    """Its time without slices inside it; 0 if it doesn't count."""
    tops: Int64
    """Rows that lie in no other slice, ascending; the rows after one, up to the next, lie in it."""
    threads: tuple[slice, ...]
    """The rows of each thread, ascending."""
    steps_ns: int
    """Length of all steps together, each from its begin to the next one's."""
    input_ns: int
    """Time in a DataLoader's `__next__`, including everything inside it."""

    def in_all(self, rows: Int64, itself: Int64) -> Int64:
        """Return for each of these ascending rows the sum of a column over the row and the rows inside it.

        `itself` has the time of each slice of the trace without slices inside it, ns.
        """
        behind, ts, end = rows + 1, self.slices.ts, self.slices.end[rows]
        for run in self.threads:
            own = slice(*np.searchsorted(rows, [run.start, run.stop]).tolist())
            behind[own] = np.maximum(behind[own], run.start + np.searchsorted(ts[run], end[own]))
        sums = np.append(0, np.cumsum(itself))
        total: Int64 = sums[behind] - sums[rows]
        return total


def host_rows(trace: Trace) -> HostRows:
    s, main = trace.slices, trace.main_steps[0].track
    covered = cover_of(step_intervals(trace))
    working = covered.without(_loader(trace, main))
    main_thread = _thread(trace, main)
    autograd = [
        thread for thread in (_thread(trace, track) for track in _autograd_tracks(trace, main)) if len(thread.tops)
    ]
    threads = [*autograd, main_thread]
    elsewhere, since = _come_first(autograd)
    counted, in_steps = np.zeros(len(s), np.bool_), np.zeros(len(s), np.bool_)
    itself = np.zeros(len(s) + 1, np.int64)  # NONE is -1 and so indexes the last row
    covers = *[working] * len(autograd), working.without(elsewhere)
    for thread, begins, cover in zip(threads, (*since, main_thread.begin), covers, strict=True):
        counted[thread.rows] = thread.counted
        in_steps[thread.rows] = thread.counted & covered.holds(thread.begin)
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
        steps_ns=covered.length,
        input_ns=covered.length - working.length,
    )


def _loader(trace: Trace, main: int) -> Cover:
    """Return when the thread of the steps was in a DataLoader's `__next__`."""
    s, rows = trace.slices, trace.where(is_loader, *HOST)
    rows = rows[s.track[rows] == main]
    return Cover(*union(s.ts[rows], s.end[rows]))


def _autograd_tracks(trace: Trace, main: int) -> list[int]:
    """Return the tracks of autograd's threads, by their name or because the engine runs there."""
    runs = np.zeros(len(trace.tracks), np.bool_)
    runs[trace.slices.track[trace.where(is_engine, *HOST)]] = True
    return sorted({*np.flatnonzero(runs | autograd_tracks(trace)).tolist()} - {main})


class _ThreadSlices(NamedTuple):
    rows: slice
    begin: Int64
    end: Int64
    counted: Bool
    """Whether a slice is on the host and in no call."""
    tops: Int64
    """Indices of those that lie in no other."""


def _thread(trace: Trace, track: int) -> _ThreadSlices:
    s, rows = trace.slices, trace.track_rows(track)
    begin, end, category = s.ts[rows], s.end[rows], s.category[rows]
    counted, is_call = of_categories(category, (*HOST, Category.OS_CALL)), of_categories(category, CALLS)
    if (is_call[:-1] & (begin[1:] < end[:-1])).any():  # otherwise no call contains the next slice, nor any later one
        reach = np.where(is_call, end, _BEFORE_ALL)
        reach = np.concatenate([[_BEFORE_ALL], np.maximum.accumulate(reach)[:-1]])
        counted &= ~((begin < reach) & (end <= reach))
    tops, is_os_call = counted & (s.parent[rows] == NONE), category == Category.OS_CALL
    if track != trace.main_steps[0].track:  # where it waits for work
        counted &= ~(tops & is_os_call)
    return _ThreadSlices(rows, begin, end, counted, np.flatnonzero(tops & ~is_os_call))


def _come_first(threads: Sequence[_ThreadSlices]) -> tuple[Cover, list[Int64]]:
    """Return when any autograd thread is in a slice, and from when on slices of each thread count.

    If several threads work at once, the one that started first counts.
    """
    tops = [thread.tops for thread in threads]
    begins = np.concatenate([_NO_TIMES, *(thread.begin[top] for thread, top in zip(threads, tops, strict=True))])
    ends = np.concatenate([_NO_TIMES, *(thread.end[top] for thread, top in zip(threads, tops, strict=True))])
    order = np.argsort(begins, kind="stable")
    elsewhere = Cover(*union(begins[order], ends[order]))
    taken = np.full(len(order), _BEFORE_ALL, np.int64)
    taken[order[1:]] = np.maximum.accumulate(ends[order])[:-1]
    if (taken <= begins).all():  # one thread, or one after the other
        return elsewhere, [thread.begin for thread in threads]
    bounds = np.cumsum([0, *map(len, tops)]).tolist()
    since = []
    for thread, first, behind in zip(threads, bounds, bounds[1:], strict=False):
        of_each = np.diff(thread.tops[1:], prepend=0, append=len(thread.begin))
        since.append(np.maximum(thread.begin, np.repeat(taken[first:behind], of_each)))
    return elsewhere, since
