"""Find the launches of a step that one CUDA graph can hold, and what splits a step into parts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from syncscan.habits.context import Context
from syncscan.habits.rules.optimizers import without_closures
from syncscan.model.arrays import Int64, distinct
from syncscan.model.finding import Finding
from syncscan.model.habit import Split
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
    """Return the parts of the steps with enough of these launches to be worth a graph, in time order."""
    if not len(calls):
        return []
    part = np.searchsorted(breaks.at, context.trace.slices.ts[calls], side="right")
    groups = np.split(calls, np.flatnonzero(np.diff(part)) + 1)
    return [Capturable(group, tuple(_intervals(context, group))) for group in groups if len(group) >= LEAST_LAUNCHES]


def _intervals(context: Context, calls: Int64) -> Iterator[ThreadInterval]:
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


def splits(context: Context, breaks: GraphBreaks) -> tuple[Split, ...]:
    """Return the kinds of breaks between the first and the last launch of a step, most frequent first."""
    at = context.trace.slices.ts[context.launch_calls]
    before, behind = np.searchsorted(at, breaks.at), context.step_of(breaks.at)
    step_of = context.step_of(at)
    within = (before > 0) & (before < len(at)) & (breaks.kind != STEP)
    within[within] &= (step_of[before[within] - 1] == behind[within]) & (step_of[before[within]] == behind[within])
    findings = _by_call(context)
    firsts = np.array([o.calls[0] for f in context.findings for o in f.occurrences], np.int64)
    within &= (breaks.kind != SYNC) | np.isin(breaks.detail, firsts)  # a copy and its synchronize count as one
    groups: dict[str, list[int]] = defaultdict(list)
    for place in np.flatnonzero(within).tolist():
        finding = findings.get(int(breaks.detail[place])) if breaks.kind[place] == SYNC else None
        groups[finding.id if finding else _what(context, breaks, place, findings)].append(place)
    listed = [_split(context, breaks, places, findings) for places in groups.values()]
    return tuple(sorted(listed, key=lambda split: (-split.per_step, split.what)))


def _split(context: Context, breaks: GraphBreaks, places: Sequence[int], findings: dict[int, Finding]) -> Split:
    first = places[0]
    finding = findings.get(int(breaks.detail[first])) if breaks.kind[first] == SYNC else None
    paused = sum(int(breaks.detail[p]) for p in places) if breaks.kind[first] not in (SYNC, LOADER) else 0
    return Split(
        what=_what(context, breaks, first, findings),
        source=(finding.in_library or finding.source) if finding else None,
        finding=finding.id if finding else "",
        per_step=len(places) / context.count,
        us=paused / context.count / 1e3,
    )


def _what(context: Context, breaks: GraphBreaks, place: int, findings: dict[int, Finding]) -> str:
    kind = int(breaks.kind[place])
    if kind == SYNC:
        finding = findings.get(int(breaks.detail[place]))
        return finding.title if finding else "a wait for the device"
    return {STEP: "", LOADER: "the loader"}.get(kind, _other_work(context, int(breaks.at[place])))


def _other_work(context: Context, at: int) -> str:
    """Return a phrase for other work of the host, with the op that launching continues with."""
    s, calls = context.trace.slices, context.launch_calls
    place = int(np.searchsorted(s.ts[calls], at))
    op = context.op(int(calls[place])) if place < len(calls) else ""
    return f"other work of the host, before {op}" if op else "other work of the host"


def _by_call(context: Context) -> dict[int, Finding]:
    return {call: f for f in context.findings for o in f.occurrences for call in o.calls}
