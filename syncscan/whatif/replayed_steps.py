"""Find the steps that are replayed of a Trace and its sync points: their launches, events, waits and threads.

A graph is written from them (`build`), and a step of its replay is unfolded with them (`schedule`). Tracks of one
program that moves between threads are one logical thread: while autograd runs backward on its own thread, the calling
thread is blocked. A thread that launches its own work in between (a loader that copies, a second model) is its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from syncscan.facts.autograd import autograd_tracks, program_track
from syncscan.facts.period import busy_time, step_intervals, waits_before
from syncscan.facts.profiler_work import profilers_own
from syncscan.model.arrays import Int64, distinct
from syncscan.model.habit import Change, Paced
from syncscan.model.interval import Interval, ThreadInterval, cover_of
from syncscan.model.trace import NONE, Trace
from syncscan.whatif.events import EventEdge, Events, first_waiters
from syncscan.whatif.launch_gaps import Launches, find_launches
from syncscan.whatif.wait_effects import NumberedPoint, WaitEffect, find_waits, held_launches

MAX_STEPS = 6
"""Steps that are replayed of a long trace: those at even ranks of length, so that their mean is the trace's."""
NO_CHANGE = Change()


class ReplayedSteps(msgspec.Struct, frozen=True, eq=False):
    """The steps of one trace that are replayed, and what the host and the device did in them."""

    intervals: tuple[Interval, ...]
    marked: bool
    """Whether the trace marks them; else it is one as a whole."""
    launches: Launches
    edges: tuple[EventEdge, ...]
    waits: tuple[WaitEffect, ...]
    threads: dict[int, int]
    """Track → number of its logical thread; the step's own is 0."""
    left_out: tuple[ThreadInterval, ...]
    """Times that aren't the threads' own, beside the waits."""
    paced: tuple[Paced, ...] = ()
    """Parts of the threads' own time that take another time than recorded."""
    busy_ns: float = 0.0
    """How long any stream works in a step, mean; 0 where the device's work isn't as recorded."""


def find_steps(
    trace: Trace,
    points: Sequence[NumberedPoint],
    chosen: Sequence[Interval] | None = None,
) -> ReplayedSteps:
    """Choose the steps of a trace, or take it whole where it marks none, and find what is replayed of them."""
    steps = _choose_steps(step_intervals(trace), MAX_STEPS) if chosen is None else list(chosen)
    around = _searched(steps)
    launches = find_launches(trace, *around)
    edges = Events(trace, launches, around).edges()
    waits = find_waits(trace, launches, _within(trace, points, steps))
    launches = explained(launches, edges)
    return ReplayedSteps(
        intervals=tuple(steps),
        marked=bool(trace.steps),
        launches=launches,
        edges=tuple(edges),
        waits=tuple(waits),
        threads=find_threads(trace, np.append(launches.tracks, [wait.track for wait in waits]).astype(np.int64)),
        left_out=(*held_launches(trace, launches), *profilers_own(trace), *waits_before(trace)),
        busy_ns=busy_time(trace, steps) / len(steps) if steps else 0.0,
    )


def with_change(steps: ReplayedSteps, change: Change) -> ReplayedSteps:
    """Return recorded steps with this change; the waits of its `calls` have been left out before."""
    return replace(
        steps,
        launches=_shortened(steps.launches, change),
        left_out=(*steps.left_out, *change.host),
        paced=change.paced,
        busy_ns=0.0 if change.work else steps.busy_ns,
    )


def both(change: Change, other: Change) -> Change:
    """Return two changes as one; work that both shorten is as short as either leaves it."""
    work = dict(change.work)
    for row, stay in other.work:
        work[row] = min(stay, work.get(row, 1.0))
    return Change(
        host=(*change.host, *other.host),
        work=tuple(work.items()),
        calls=(*change.calls, *other.calls),
        paced=change.paced or other.paced,  # a step is compiled once: as the one above in the list has it
    )


def _shortened(launches: Launches, change: Change) -> Launches:
    """Return the launches with the change's `work` shortened; removed work leaves no gap either."""
    gap, latency = launches.gap.copy(), launches.latency.copy()
    factor = np.ones(len(launches))
    if change.work:
        rows, stay = (np.array(c) for c in zip(*sorted(change.work), strict=True))
        at = np.minimum(np.searchsorted(rows, launches.rows), len(rows) - 1)
        factor = np.where(rows[at] == launches.rows, stay[at], 1.0)
        removed = factor == 0.0
        gap[removed], latency[removed] = 0.0, np.minimum(latency[removed], 0.0)
    length = ((launches.end - launches.start) * factor).astype(np.int64)
    return replace(launches, end=launches.start + length, gap=gap, latency=latency)


def _within(trace: Trace, points: Sequence[NumberedPoint], steps: Sequence[Interval]) -> list[NumberedPoint]:
    begun = trace.slices.ts[np.array([point.calls[0] for _, point, _ in points], np.int64)]
    return [points[at] for at in np.flatnonzero(cover_of(steps).holds(begun)).tolist()]


def _choose_steps(steps: Sequence[Interval], count: int) -> list[Interval]:
    """Return the steps to replay of a trace's: all, or as many at even ranks of length; in time order."""
    if len(steps) <= count:
        return list(steps)
    by_length = sorted(steps, key=lambda step: step.length)
    ranks = ((np.arange(count) + 0.5) * len(steps) / count).astype(int)
    return sorted(by_length[rank] for rank in ranks)


def _searched(steps: Sequence[Interval]) -> Interval:
    """Return the interval in which to look for launches and events of these steps: the previous step counts too."""
    if not steps:
        return Interval(0, 0)
    return Interval(steps[0].begin - max(step.length for step in steps), steps[-1].end)


def explained(launches: Launches, edges: list[EventEdge]) -> Launches:
    """Return the launches, those that start late because of an event edge with the usual gap and latency."""
    first = first_waiters(edges)
    gap, latency = launches.gap.copy(), launches.latency.copy()
    gap[first] = np.minimum(gap[first], launches.usual_gap[first])
    latency[first] = np.minimum(latency[first], launches.usual_latency)
    return replace(launches, gap=gap, latency=latency)


_TURNS = 0.1
"""Largest part of a track's slices that may alternate with the step's thread, or during which that thread may begin
slices of its own, if work is handed over to it."""


def find_threads(trace: Trace, tracks: Int64) -> dict[int, int]:
    """Return the logical thread of each of these tracks; the step's own thread is 0.

    Without steps, the program's track with most launches and waits is the step's own.
    """
    main = trace.main_steps[0].track if trace.steps else program_track(trace, tracks)
    threads = {main: 0}
    for track in sorted({*distinct(tracks).tolist()} - {main}):
        threads[track] = 0 if _handed_over(trace, main, track) else max(threads.values()) + 1
    return threads


def _handed_over(trace: Trace, main: int, other: int) -> bool:
    if main == NONE:
        return False
    if autograd_tracks(trace)[other]:
        return True
    s = trace.slices
    a, b = s.ts[trace.track_rows(main)], s.ts[trace.track_rows(other)]
    begun = np.searchsorted(a, b)
    if np.count_nonzero(np.searchsorted(a, s.end[trace.track_rows(other)]) > begun) > _TURNS * len(b):
        return False
    return bool(np.count_nonzero(np.diff(begun)) <= max(4, _TURNS * len(b)))
