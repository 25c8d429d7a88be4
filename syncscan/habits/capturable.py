"""Find the parts of steps that a CUDA graph can hold: launches without waits and with little else in between.

A graph holds the device work between two waits of the host, and saves the host what launching it takes: Python between
ops, dispatch, and calls. What a trainer, a loader or a log does between two launches isn't saved.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from syncscan.habits.closures import without_closures
from syncscan.habits.context import Context
from syncscan.model.arrays import Int64, distinct
from syncscan.model.interval import ThreadInterval
from syncscan.model.slice_names import is_loader, is_optimizer
from syncscan.model.trace import Category

LEAST_LAUNCHES = 50
"""Fewer launches aren't worth a graph, whose own call costs the host as much as some of them."""
OTHER_NS = 100_000
"""A longer pause between two ops of a thread isn't Python on its way to the next op (H200 hosts, profiled: 2 to 70
µs)."""
HANDED_OVER_NS = 400_000
"""Like `OTHER_NS`, where backward begins or ends on a thread of its own (H200 hosts, profiled: 200 to 330 µs)."""


STEP, SYNC, LOADER, OTHER = range(4)
"""Kinds of breaks."""


class Capturable(msgspec.Struct, frozen=True):
    """Launches of one step that one graph can hold: rows of their calls, in time order."""

    calls: Int64
    host: tuple[ThreadInterval, ...]
    """On each launching thread: from the first call's begin to the last one's end."""
    ended_by: int
    """Index in `GraphBreaks` of the break after it; the number of breaks if there is none."""

    @property
    def length_ns(self) -> int:
        """Time from the first call's begin to the last one's end, across threads."""
        return max(i.end for i in self.host) - min(i.begin for i in self.host)


class GraphBreaks(msgspec.Struct, frozen=True):
    """Breaks that no graph can span, in time order: time, kind, and the sync's call or the length of the pause."""

    at: Int64
    kind: Int64
    detail: Int64
    """For a sync, the row of its call; for other work, the time without anything on its way to a launch, ns; else 0."""

    @classmethod
    def of(cls, context: Context) -> GraphBreaks:
        """Return a trace's breaks: step begins, waits, loaders, and other work of the host."""
        s, trace = context.trace.slices, context.trace
        syncs = np.array(sorted(context.sync_calls), np.int64)
        loaders = trace.where(is_loader, Category.ANNOTATION)
        behind, pause = _recurring(context, *_behind_other_work(context))
        parts = [
            (context.begins, STEP, 0),
            (s.ts[syncs], SYNC, syncs),
            (s.ts[loaders], LOADER, 0),
            (behind, OTHER, pause),
        ]
        at = np.concatenate([times for times, _, _ in parts])
        kind = np.concatenate([np.full(len(times), code, np.int64) for times, code, _ in parts])
        detail = np.concatenate([np.broadcast_to(np.asarray(d, np.int64), len(times)) for times, _, d in parts])
        order = np.argsort(at, kind="stable")
        return cls(at[order], kind[order], detail[order])


def capturable(context: Context, calls: Int64, breaks: GraphBreaks) -> list[Capturable]:
    """Return the parts of the steps with enough of these launches to be worth a graph, in time order.

    Args:
        context: context of the trace.
        calls: rows of launching calls, in time order.
        breaks: the breaks that no graph can span.
    """
    if not len(calls):
        return []
    part = np.searchsorted(breaks.at, context.trace.slices.ts[calls], side="right")
    cuts = np.flatnonzero(np.diff(part)) + 1
    ended_by = part[np.concatenate([[0], cuts])].tolist()
    return [
        Capturable(group, tuple(intervals_of(context, group)), behind)
        for group, behind in zip(np.split(calls, cuts), ended_by, strict=True)
        if len(group) >= LEAST_LAUNCHES
    ]


def intervals_of(context: Context, calls: Int64) -> Iterator[ThreadInterval]:
    """Yield for each thread with some of these calls the interval from the first one's begin to the last one's end."""
    s = context.trace.slices
    for track in distinct(s.track[calls]).tolist():
        own = calls[s.track[calls] == track]
        yield ThreadInterval(track, int(s.ts[own].min()), int(s.end[own].max()))


def _behind_other_work(context: Context) -> tuple[Int64, Int64]:
    """Return when launching continues after the host did something else for a while, and how long that took, ns."""
    s = context.trace.slices
    rows = _launching(context)
    rows = rows[np.argsort(s.ts[rows], kind="stable")]
    if len(rows) < 2:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    reached = np.maximum.accumulate(s.end[rows])
    last = np.maximum.accumulate(np.where(s.end[rows] == reached, np.arange(len(rows)), 0))[:-1]
    pause = s.ts[rows][1:] - reached[:-1]
    handed_over = s.track[rows][1:] != s.track[rows][last]
    long = pause > np.where(handed_over, HANDED_OVER_NS, OTHER_NS)
    return s.ts[rows][1:][long], pause[long]


def _recurring(context: Context, behind: Int64, pause: Int64) -> tuple[Int64, Int64]:
    """Return the pauses that come after the same number of launches in most steps.

    Others are the machine's rather than the program's, for example when the system preempts a thread.
    """
    at = context.trace.slices.ts[context.launch_calls]
    step = context.step_of(behind)
    first = np.searchsorted(at, context.begins)[np.maximum(step, 0)]
    ordinal = np.searchsorted(at, behind) - first
    places, which = np.unique(np.stack([ordinal, step]), axis=1, return_inverse=True)
    _, group, steps = np.unique(places[0], return_inverse=True, return_counts=True)
    often = (2 * steps > context.count)[group][which.reshape(-1)]
    return behind[often], pause[often]


def _launching(context: Context) -> Int64:
    """Return the rows on launching threads in which the host is on its way to a launch: ops, optimizers, calls."""
    s, trace, calls = context.trace.slices, context.trace, context.launch_calls
    on_launching_track = np.isin(s.track, distinct(s.track[calls]))
    ops = np.flatnonzero(on_launching_track & trace.is_category(Category.CPU_OP))
    optimizers = trace.where(is_optimizer, Category.ANNOTATION)
    optimizers = optimizers[on_launching_track[optimizers]]
    alone = without_closures(context, optimizers.tolist())
    return np.concatenate([ops, np.array(alone, np.int64), calls])
