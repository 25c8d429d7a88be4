"""Find the steps that are replayed of a Trace and its sync points: their launches, events, waits and threads.

A graph is written from them (`build`), and a step of its replay is unfolded with them (`schedule`).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from syncscan.facts.period import busy_time, step_intervals, waits_before
from syncscan.facts.profiler_overhead import profilers_own
from syncscan.model.habit import Change, Paced
from syncscan.model.interval import Interval, ThreadInterval, cover_of
from syncscan.model.trace import NONE, Trace
from syncscan.whatif import changes
from syncscan.whatif.events import EventEdge, Events, first_waiters
from syncscan.whatif.launches import Launches, find_launches
from syncscan.whatif.logical_threads import find_threads
from syncscan.whatif.overlap import ahead, launched_in
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
    added_from: int = NONE
    """The number from which on streams are the ones that a pipeline would add; NONE without."""
    busy_ns: float = 0.0
    """How long any stream works in a step, mean; 0 where the device's work isn't as recorded."""


def find_steps(
    trace: Trace,
    points: Sequence[NumberedPoint],
    ahead_of: str = "",
    change: Change = NO_CHANGE,
    chosen: Sequence[Interval] | None = None,
) -> ReplayedSteps:
    """Choose the steps of a trace, or take it whole where it marks none, and find what is replayed of them.

    Args:
        trace: any trace; without runtime calls and device work there are no launches and no waits.
        points: its sync points.
        ahead_of: glob of scopes whose device work gets streams of its own, where nothing waits for it.
        change: what else is different from the recorded steps.
        chosen: the steps to replay; by default as many as MAX_STEPS at even ranks of length.
    """
    steps = _choose_steps(step_intervals(trace), MAX_STEPS) if chosen is None else list(chosen)
    around = _searched(steps)
    launches = find_launches(trace, *around)
    added_from = len(launches.streams) if ahead_of else NONE
    if ahead_of:
        launches = ahead(launches, launched_in(trace, launches, ahead_of))
    launches = changes.moved(launches, change)
    edges = Events(trace, launches, around).edges()
    removed_calls = frozenset(change.calls)
    waits = find_waits(
        trace, launches, [p for p in _within(trace, points, steps) if p.point.calls[0] not in removed_calls]
    )
    launches = changes.shortened(explained(launches, edges), change)
    as_recorded = not (ahead_of or change.work or change.ahead)
    return ReplayedSteps(
        intervals=tuple(steps),
        marked=bool(trace.steps),
        launches=launches,
        edges=tuple(edges),
        waits=tuple(waits),
        threads=find_threads(trace, np.append(launches.tracks, [wait.track for wait in waits]).astype(np.int64)),
        left_out=(
            *held_launches(trace, launches),
            *profilers_own(trace),
            *waits_before(trace),
            *change.host,
            *_of_calls(trace, change),
        ),
        paced=change.paced,
        added_from=added_from,
        busy_ns=busy_time(trace, steps) / len(steps) if steps and as_recorded else 0.0,
    )


def with_change(steps: ReplayedSteps, change: Change) -> ReplayedSteps:
    """Return what `find_steps` would with this change, of steps that were found without it.

    Most habits make such a change, and ask often.

    Args:
        steps: the steps, as recorded.
        change: which neither moves work ahead nor leaves calls out, so that what waits for what stays as it was.
    """
    return replace(
        steps,
        launches=changes.shortened(steps.launches, change),
        left_out=(*steps.left_out, *change.host),
        paced=change.paced,
        busy_ns=0.0 if change.work else steps.busy_ns,
    )


def _within(trace: Trace, points: Sequence[NumberedPoint], steps: Sequence[Interval]) -> list[NumberedPoint]:
    """Return those of these sync points that begin in one of these steps."""
    begun = trace.slices.ts[np.array([point.calls[0] for _, point in points], np.int64)]
    return [points[at] for at in np.flatnonzero(cover_of(steps).holds(begun)).tolist()]


def _of_calls(trace: Trace, change: Change) -> list[ThreadInterval]:
    """Return the intervals of the calls that would be gone."""
    s = trace.slices
    return [ThreadInterval(int(s.track[call]), int(s.ts[call]), int(s.end[call])) for call in change.calls]


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
    gap[first] = np.minimum(gap[first], launches.usual_gaps.of(first))
    latency[first] = np.minimum(latency[first], launches.usual_latency)
    return replace(launches, gap=gap, latency=latency)
