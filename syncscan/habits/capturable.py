"""From a Context to the parts of its steps that a CUDA graph can hold: launches with no wait and little else between.

A graph holds what the device does from one wait of the host to the next, and spares the host what it does to launch it:
Python between two ops, dispatch, and calls. What a trainer, a loader or a log does between two launches isn't spared.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from syncscan.habits.closures import without_closures
from syncscan.habits.context import Context
from syncscan.model.arrays import Int64, distinct
from syncscan.model.interval import ThreadInterval
from syncscan.model.names import is_loader, is_optimizer
from syncscan.model.trace import Category

LEAST_LAUNCHES = 50
"""Fewer launches aren't worth a graph, whose own call costs the host what some of them do."""
OTHER_NS = 100_000
"""So long between two ops of one thread isn't Python on its way to the next op (H200's hosts, profiled: 2 to 70 µs)."""
HANDED_OVER_NS = 400_000
"""The same where backward begins or ends, on a thread of its own (H200's hosts, profiled: 200 to 330 µs)."""


STEP, SYNC, LOADER, OTHER = range(4)
"""What a break is."""


class Capturable(msgspec.Struct, frozen=True):
    """Launches of one step that one graph can hold: rows of their calls, in time order."""

    calls: Int64
    host: tuple[ThreadInterval, ...]
    """On each thread that launches some of them: from its first call's begin to its last one's end."""
    ended_by: int
    """The place in `Breaks` of what stands behind it; the number of breaks where nothing does."""

    @property
    def length_ns(self) -> int:
        """From the first call's begin to the end of the last one, on whichever thread."""
        return max(i.end for i in self.host) - min(i.begin for i in self.host)


class Breaks(msgspec.Struct, frozen=True):
    """What no graph reaches across, in time order: when, what kind it is, and which sync's call or whose pause."""

    at: Int64
    kind: Int64
    detail: Int64
    """Of a sync the row of its call; of other work for how long nothing was on its way to a launch, in ns; else 0."""

    @classmethod
    def of(cls, context: Context) -> Breaks:
        """A step's begin, a wait, a loader, other work of the host."""
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


def capturable(context: Context, calls: Int64, breaks: Breaks) -> list[Capturable]:
    """The parts of the steps with so many of these launches that a graph is worth it, in time order.

    Args:
        context: of the trace.
        calls: rows of calls that launch work, in time order.
        breaks: what no graph reaches across.
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
    """On each thread that makes some of these calls: from the first one's begin to the last one's end."""
    s = context.trace.slices
    for track in distinct(s.track[calls]).tolist():
        mine = calls[s.track[calls] == track]
        yield ThreadInterval(track, int(s.ts[mine].min()), int(s.end[mine].max()))


def _behind_other_work(context: Context) -> tuple[Int64, Int64]:
    """When launching goes on after the host did something else for a while, and for how long it did, ns."""
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
    """Those of the pauses that come behind as many launches in most of the steps: others are the machine's, not the
    program's, as where the system takes a thread off its processor for a while.
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
    """Rows on the threads that launch in which the host is on its way to a launch: ops, optimizers, the calls."""
    s, trace, calls = context.trace.slices, context.trace, context.launch_calls
    mine = np.isin(s.track, distinct(s.track[calls]))
    ops = np.flatnonzero(mine & trace.is_category(Category.CPU_OP))
    optimizers = trace.where(is_optimizer, Category.ANNOTATION)
    optimizers = optimizers[mine[optimizers]]
    alone = without_closures(context, optimizers.tolist())
    return np.concatenate([ops, np.array(alone, np.int64), calls])
