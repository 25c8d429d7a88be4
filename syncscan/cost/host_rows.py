"""From a trace's steps to the host slices of their threads, as columns: how long each takes by itself, and in all.

The threads of the steps are the one that runs them and autograd's, for which that one waits. Each moment of the steps
counts once: in the loader where the steps' thread is in one, else on an autograd thread that is in any slice, else on
the steps' thread. So the parts add up to the steps.
"""

from __future__ import annotations

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

    All columns have one length; times are ns of the steps, each moment counted once.
    """

    rows: Int64
    outermost: Int64
    """The row of the outermost of them around each; itself where there is none."""
    last: Int64
    """The place behind the last of those that lie in it."""
    itself: Int64
    """How long it takes without those that lie in it."""
    steps_ns: int
    """All steps together, each from its begin to the next one's."""
    input_ns: int
    """In a DataLoader's `__next__`, with all that it does."""

    def in_all(self, column: Int64) -> Int64:
        """Of each the sum of a column over itself and those that lie in it."""
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(column)])
        total: Int64 = sums[self.last] - sums[: len(self.rows)]
        return total


def host_rows(trace: Trace) -> HostRows:
    """The slices of a trace that marks steps."""
    s, main = trace.slices, trace.main_steps[0].track
    steps = union_of(step_intervals(trace))
    whole = Cover(*(np.array(ends, np.int64) for ends in zip(*steps, strict=True)))
    loader = _loader(trace, main)
    working = whole.without(loader)
    tracks = [*_autograd_tracks(trace, main), main]
    each = [_rows_of(trace, track) for track in tracks]
    rows = np.concatenate(each)
    last = np.concatenate([_last(trace, mine) for mine in each])
    last += np.repeat(np.cumsum([0, *map(len, each[:-1])]), [len(mine) for mine in each])
    around, outermost = _around(trace, rows)
    on_main = s.track[rows] == main
    begin = np.where(on_main, s.ts[rows], _first_come(trace, rows, outermost, on_main))
    tops = rows[(around == NONE) & ~on_main]
    tops = tops[np.argsort(s.ts[tops], kind="stable")]
    left = working.without(Cover(*union(s.ts[tops], s.end[tops])))
    end = s.end[rows]
    took = np.where(on_main, left.within(begin, end), working.within(begin, end))
    inner = np.zeros(len(rows), np.int64)
    np.add.at(inner, around[around != NONE], took[around != NONE])
    return HostRows(
        rows=rows,
        outermost=rows[outermost],
        last=last,
        itself=np.maximum(took - inner, 0),
        steps_ns=whole.length,
        input_ns=whole.length - working.length,
    )


def _loader(trace: Trace, main: int) -> Cover:
    """When the steps' thread was in a DataLoader's `__next__`."""
    s = trace.slices
    rows = np.flatnonzero(trace.is_category(*HOST) & trace.named(is_loader) & (s.track == main))
    return Cover(*union(s.ts[rows], s.end[rows]))


def _autograd_tracks(trace: Trace, main: int) -> list[int]:
    """The tracks of autograd's threads: they are called so, or its engine runs there."""
    engine = set(trace.slices.track[trace.is_category(*HOST) & trace.named(is_engine)].tolist())
    called = (number for number, track in enumerate(trace.tracks) if is_autograd_thread(track.thread))
    return sorted({*called, *engine} - {main})


def _rows_of(trace: Trace, track: int) -> Int64:
    """The host slices of a track that lie in no call."""
    s, run = trace.slices, trace.track_rows(track)
    rows = run.start + np.flatnonzero(np.isin(s.category[run], HOST))
    called = np.where(np.isin(s.category[rows], CALLS), s.end[rows], _BEFORE_ALL)
    reach = np.concatenate([[_BEFORE_ALL], np.maximum.accumulate(called)])[: len(rows)]
    inside: Bool = (s.ts[rows] < reach) & (s.end[rows] <= reach)
    kept: Int64 = rows[~inside]
    return kept


def _last(trace: Trace, rows: Int64) -> Int64:
    """For each row of one track the place behind the last that begins in it."""
    s = trace.slices
    behind: Int64 = np.searchsorted(s.ts[rows], s.end[rows])
    return np.maximum(behind, np.arange(len(rows)) + 1)


def _around(trace: Trace, rows: Int64) -> tuple[Int64, Int64]:
    """For each the place of the innermost of them around it, NONE without, and the place of the outermost."""
    place = np.full(len(trace.slices) + 1, NONE, np.int64)
    place[rows] = np.arange(len(rows))
    around = place[trace.slices.parent[rows]]  # NONE, which is -1, is the place at the end
    return around, np.maximum.accumulate(np.where(around == NONE, np.arange(len(rows)), 0))


def _first_come(trace: Trace, rows: Int64, outermost: Int64, on_main: Bool) -> Int64:
    """From when on each row counts: where several of autograd's threads work at once, the one that came first does."""
    s, begin = trace.slices, trace.slices.ts[rows].copy()
    outer = np.zeros(len(rows), np.bool_)
    outer[outermost[~on_main]] = True
    tops = np.flatnonzero(outer)
    tops = tops[np.argsort(s.ts[rows[tops]], kind="stable")]
    taken = np.concatenate([[_BEFORE_ALL], np.maximum.accumulate(s.end[rows[tops]])])[: len(tops)]
    until = np.full(len(rows), _BEFORE_ALL, np.int64)
    until[tops] = taken
    return np.maximum(begin, until[outermost])
