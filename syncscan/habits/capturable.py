"""From a Context to the parts of its steps that a CUDA graph can hold: launches with no wait and little else between.

A graph holds what the device does from one wait of the host to the next, and spares the host what it does to launch it:
Python between two ops, dispatch, and calls. What a trainer, a loader or a log does between two launches isn't spared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from syncscan.habits.context import Context
from syncscan.model.arrays import Int64
from syncscan.model.interval import ThreadInterval
from syncscan.model.names import is_loader, is_optimizer
from syncscan.model.trace import Category

LEAST_LAUNCHES = 50
"""Fewer launches aren't worth a graph, whose own call costs the host what some of them do."""
OTHER_NS = 100_000
"""So long between two ops of one thread isn't Python on its way to the next op (H200's hosts, profiled: 2 to 70 µs)."""
HANDED_OVER_NS = 400_000
"""The same where backward begins or ends, on a thread of its own (H200's hosts, profiled: 200 to 330 µs)."""


@dataclass(frozen=True, slots=True)
class Capturable:
    """Launches of one step that one graph can hold: rows of their calls, in time order."""

    calls: Int64
    host: tuple[ThreadInterval, ...]
    """On each thread that launches some of them: from its first call's begin to its last one's end."""

    @property
    def length_ns(self) -> int:
        """From the first call's begin to the end of the last one, on whichever thread."""
        return max(i.end for i in self.host) - min(i.begin for i in self.host)


def capturable(context: Context) -> list[Capturable]:
    """The parts of the steps with so many launches that a graph is worth it, in time order."""
    s = context.trace.slices
    calls = context.launch_calls
    part = np.searchsorted(_breaks(context), s.ts[calls], side="right")
    groups = np.split(calls, np.flatnonzero(np.diff(part)) + 1)
    return [Capturable(g, tuple(_host(context, g))) for g in groups if len(g) >= LEAST_LAUNCHES]


def _host(context: Context, calls: Int64) -> Iterator[ThreadInterval]:
    s = context.trace.slices
    for track in np.unique(s.track[calls]).tolist():
        mine = calls[s.track[calls] == track]
        yield ThreadInterval(track, int(s.ts[mine].min()), int(s.end[mine].max()))


def _breaks(context: Context) -> Int64:
    """Times, in order, that no graph reaches across: a step's begin, a wait, a loader, other work of the host."""
    s, trace = context.trace.slices, context.trace
    steps = [step.begin for step in context.steps]
    syncs = s.ts[np.array(sorted(context.sync_calls), np.int64)]
    loaders = s.ts[np.flatnonzero(trace.is_category(Category.ANNOTATION) & trace.named(is_loader))]
    return np.unique(np.concatenate([np.array(steps, np.int64), syncs, loaders, _behind_other_work(context)]))


def _behind_other_work(context: Context) -> Int64:
    """When launching goes on after the host did something else for a while."""
    s = context.trace.slices
    rows = _launching(context)
    rows = rows[np.argsort(s.ts[rows], kind="stable")]
    if len(rows) < 2:
        return np.zeros(0, np.int64)
    reached = np.maximum.accumulate(s.end[rows])
    last = np.maximum.accumulate(np.where(s.end[rows] == reached, np.arange(len(rows)), 0))[:-1]
    pause = s.ts[rows][1:] - reached[:-1]
    handed_over = s.track[rows][1:] != s.track[rows][last]
    long = pause > np.where(handed_over, HANDED_OVER_NS, OTHER_NS)
    behind: Int64 = s.ts[rows][1:][long]
    return behind


def _launching(context: Context) -> Int64:
    """Rows on the threads that launch in which the host is on its way to a launch: ops, optimizers, the calls.

    An optimizer's step in which another thread launches holds a closure: a trainer's whole step runs in it.
    """
    s, trace, calls = context.trace.slices, context.trace, context.launch_calls
    mine = np.isin(s.track, np.unique(s.track[calls]))
    ops = np.flatnonzero(mine & trace.is_category(Category.CPU_OP))
    optimizers = np.flatnonzero(mine & trace.is_category(Category.ANNOTATION) & trace.named(is_optimizer))
    alone = [r for r in optimizers.tolist() if not _others_launch(context, r)]
    return np.concatenate([ops, np.array(alone, np.int64), calls])


def _others_launch(context: Context, row: int) -> bool:
    """Whether another thread launches while this slice of a thread runs."""
    s, calls = context.trace.slices, context.launch_calls
    first, end = np.searchsorted(s.ts[calls], [s.ts[row], s.end[row]])
    return bool((s.track[calls[first:end]] != s.track[row]).any())
