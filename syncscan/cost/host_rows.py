"""From a trace's steps to the host slices of their threads, as columns: how long each takes by itself, and in all.

The threads of the steps are the one that runs them and autograd's, for which that one waits. Each moment of the steps
counts once: in the loader where the steps' thread is in one, else on an autograd thread that is in any slice, else on
the steps' thread. So the parts add up to the steps.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from syncscan.model.arrays import Bool, Int64
from syncscan.model.interval import Cover, union, union_of
from syncscan.model.names import is_autograd_thread, is_engine, is_loader
from syncscan.model.period import step_intervals
from syncscan.model.trace import CALLS, HOST, NONE, Trace

_BEFORE_ALL = np.iinfo(np.int64).min


@dataclass(frozen=True, eq=False, slots=True)
class HostRows:
    """Ops, calls and ranges of the steps' threads, in the trace's order; what lies in a call is part of that call.

    All columns but `threads` have one length; times are ns of the steps, each moment counted once.
    """

    rows: Int64
    begin: Int64
    end: Int64
    in_steps: Bool
    """Which begin in a step, or in the pause behind it."""
    outermost: Int64
    """The place of the outermost of them around each; its own where there is none."""
    itself: Int64
    """How long it takes without those that lie in it."""
    threads: Int64
    """The place of each thread's first row, and behind the last thread's last."""
    steps_ns: int
    """All steps together, each from its begin to the next one's."""
    input_ns: int
    """In a DataLoader's `__next__`, with all that it does."""

    def in_all(self, column: Int64, places: Int64) -> Int64:
        """Of each of these places the sum of a column over itself and those that lie in it."""
        sums = np.zeros(len(column) + 1, np.int64)
        np.cumsum(column, out=sums[1:])
        last = places + 1
        for first, behind in itertools.pairwise(self.threads.tolist()):
            mine = (places >= first) & (places < behind)
            reached = first + np.searchsorted(self.begin[first:behind], self.end[places[mine]])
            last[mine] = np.maximum(last[mine], reached)
        total: Int64 = sums[last] - sums[places]
        return total


def host_rows(trace: Trace) -> HostRows:
    """The slices of a trace that marks steps."""
    s, main = trace.slices, trace.main_steps[0].track
    steps = union_of(step_intervals(trace))
    whole = Cover(*(np.array(ends, np.int64) for ends in zip(*steps, strict=True)))
    working = whole.without(_loader(trace, main))
    each = _rows_of(trace, [*_autograd_tracks(trace, main), main])
    threads = np.cumsum([0, *map(len, each)])
    rows = np.concatenate(each)
    begin, end = s.ts.take(rows), s.end.take(rows)
    around = _around(trace, rows)
    tops = np.flatnonzero(around == NONE)
    outermost = np.repeat(tops, np.diff(tops, append=len(rows)))
    threads_of_autograd = slice(threads[-2])
    tops = tops[tops < threads[-2]]
    tops = tops[np.argsort(begin[tops], kind="stable")]
    left = working.without(Cover(*union(begin[tops], end[tops])))
    first_come = _first_come(begin[threads_of_autograd], end, tops, outermost[threads_of_autograd])
    runs = [slice(*run) for run in itertools.pairwise(threads.tolist())]
    took = [working.within(first_come[run], end[run]) for run in runs[:-1]]
    itself = np.concatenate([*took, left.within(begin[runs[-1]], end[runs[-1]])])
    inner = np.zeros(len(rows) + 1, np.int64)
    np.add.at(inner, around, itself)
    itself -= inner[:-1]
    return HostRows(
        rows=rows,
        begin=begin,
        end=end,
        in_steps=np.concatenate([whole.holds_ascending(begin[run]) for run in runs]),
        outermost=outermost,
        itself=np.maximum(itself, 0, out=itself),
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


def _rows_of(trace: Trace, tracks: list[int]) -> list[Int64]:
    """Of each of these tracks the host slices that lie in no call."""
    s, found = trace.slices, list[Int64]()
    calls, host = trace.is_category(*CALLS), trace.is_category(*HOST)
    for run in map(trace.track_rows, tracks):
        begin, end, kept = s.ts[run], s.end[run], host[run]
        called = np.where(calls[run], end, _BEFORE_ALL)
        if (begin[1:] < called[:-1]).any():  # else no call holds what begins right behind it, nor anything later
            reach = np.concatenate([[_BEFORE_ALL], np.maximum.accumulate(called)[:-1]])
            kept = kept & ~((begin < reach) & (end <= reach))
        found.append(run.start + np.flatnonzero(kept))
    return found


def _around(trace: Trace, rows: Int64) -> Int64:
    """For each the place of the innermost of them around it, NONE without."""
    place = np.full(len(trace.slices) + 1, NONE, np.int64)
    place[rows] = np.arange(len(rows))
    around: Int64 = place.take(trace.slices.parent.take(rows))  # NONE, which is -1, is the place at the end
    return around


def _first_come(begin: Int64, end: Int64, tops: Int64, outermost: Int64) -> Int64:
    """From when on each slice counts: where several of autograd's threads work at once, the one that came first does.

    Args:
        begin: of each slice of those threads.
        end: of these slices at least.
        tops: the places of those that lie in no other, in order of their begin.
        outermost: of each slice the place of the one of them that it lies in.
    """
    taken = np.full(len(begin), _BEFORE_ALL, np.int64)
    taken[tops[1:]] = np.maximum.accumulate(end[tops])[:-1]
    return np.maximum(begin, taken.take(outermost))
