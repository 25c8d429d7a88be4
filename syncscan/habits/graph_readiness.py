"""Group what a CUDA graph can hold into segments by phase, and name what splits a step into parts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from syncscan.habits.capturable import LOADER, STEP, SYNC, Capturable, GraphBreaks, intervals_of
from syncscan.habits.closures import without_closures
from syncscan.habits.context import Context
from syncscan.model.arrays import Int64, distinct
from syncscan.model.finding import Finding, Phase
from syncscan.model.habit import Change, Segment, Split
from syncscan.model.interval import ThreadInterval
from syncscan.model.slice_names import is_backward, is_gradient, is_optimizer
from syncscan.model.trace import NONE, Category


class LaunchRun(msgspec.Struct, frozen=True):
    """Launches of one phase within a part that a graph can hold: rows of their calls, in time order."""

    step: int
    phase: Phase
    calls: Int64
    host: tuple[ThreadInterval, ...]
    """On each launching thread: from the first call's begin to the last one's end."""
    parameters: int
    """Number of parameters whose gradients are accumulated meanwhile."""
    ended_by: int
    """Index in `GraphBreaks` of the break after the part; NONE if the part continues with another phase."""


Changes = Callable[[Sequence[LaunchRun]], tuple[Change, ...]]
"""Function from runs of launches to the changes that a graph or a compile makes to the step."""


def runs_of(context: Context, parts: Sequence[Capturable], elsewhere: Sequence[ThreadInterval] = ()) -> list[LaunchRun]:
    """Return the launches of the parts, split where the phase changes, in time order.

    Args:
        context: the context of the trace.
        parts: the parts that a graph can hold.
        elsewhere: intervals whose launches belong to another habit; no run spans them.
    """
    if not parts:
        return []
    s, trace = context.trace.slices, context.trace
    codes = _phases(context, np.concatenate([part.calls for part in parts]))
    steps = context.step_of([s.ts[p.calls[0]] for p in parts])
    gradients = np.sort(s.ts[trace.where(is_gradient, Category.CPU_OP)])
    borders = np.array([begin for _, begin, _ in elsewhere], np.int64)
    ends, split = np.cumsum([len(part.calls) for part in parts])[:-1], list[LaunchRun]()
    for part, step, phase_codes in zip(parts, steps.tolist(), np.split(codes, ends), strict=True):
        segment = np.searchsorted(borders, s.ts[part.calls])
        runs = np.split(np.arange(len(phase_codes)), np.flatnonzero(np.diff(phase_codes) | np.diff(segment)) + 1)
        for run in runs:
            host = tuple(intervals_of(context, part.calls[run]))
            held = np.searchsorted(gradients, [min(i.begin for i in host), max(i.end for i in host)])
            phase, last = _PHASES[int(phase_codes[run[0]])], run is runs[-1]
            parameters = int(held[1] - held[0])
            split.append(LaunchRun(step, phase, part.calls[run], host, parameters, part.ended_by if last else NONE))
    return split


def segments(context: Context, runs: Sequence[LaunchRun], breaks: GraphBreaks, changes: Changes) -> tuple[Segment, ...]:
    """Return segments, each of the runs at the same place of every step, longest first.

    Args:
        context: the context of the trace.
        runs: the runs in time order.
        breaks: the breaks between them.
        changes: function from runs to the changes of a replay.
    """
    groups: dict[tuple[Phase, int], list[LaunchRun]] = defaultdict(list)
    met: dict[tuple[int, Phase], int] = defaultdict(int)
    for run in runs:
        groups[run.phase, met[run.step, run.phase]].append(run)
        met[run.step, run.phase] += 1
    findings = _by_call(context)
    listed = [_segment(context, members, breaks, findings, changes) for members in groups.values()]
    return tuple(sorted(listed, key=lambda segment: -segment.host_us))


def splits(context: Context, breaks: GraphBreaks) -> tuple[Split, ...]:
    """Return the kinds of breaks between the first and the last launch of a step, most frequent first."""
    at = context.trace.slices.ts[context.launch_calls]
    before, behind = np.searchsorted(at, breaks.at), context.step_of(breaks.at)
    step_of = context.step_of(at)
    within = (before > 0) & (before < len(at)) & (breaks.kind != STEP)
    within[within] &= (step_of[before[within] - 1] == behind[within]) & (step_of[before[within]] == behind[within])
    findings = _by_call(context)
    firsts = np.array([o.sync.calls[0] for f in context.findings for o in f.occurrences], np.int64)
    within &= (breaks.kind != SYNC) | np.isin(breaks.detail, firsts)  # a copy and its synchronize count as one
    groups: dict[str, list[int]] = defaultdict(list)
    for place in np.flatnonzero(within).tolist():
        finding = findings.get(int(breaks.detail[place])) if breaks.kind[place] == SYNC else None
        groups[finding.id if finding else _what(context, breaks, place, findings)].append(place)
    listed = [_split(context, breaks, places, findings) for places in groups.values()]
    return tuple(sorted(listed, key=lambda split: (-split.per_step, split.what)))


def _segment(
    context: Context, runs: Sequence[LaunchRun], breaks: GraphBreaks, findings: dict[int, Finding], changes: Changes
) -> Segment:
    length = sum(max(i.end for i in run.host) - min(i.begin for i in run.host) for run in runs)
    ends = [run.ended_by for run in runs if 0 <= run.ended_by < len(breaks.at)]
    return Segment(
        phase=runs[0].phase,
        launches=sum(len(run.calls) for run in runs) / context.count,
        host_us=length / context.count / 1e3 * context.host_scale,
        ended_by=_what(context, breaks, ends[0], findings) if ends else "",
        changes=changes(runs),
    )


_PHASES = (Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER, Phase.OTHER)


def _phases(context: Context, calls: Int64) -> Int64:
    """Return the index of each call's phase in `_PHASES`."""
    trace, s = context.trace, context.trace.slices
    backward = trace.where(is_backward, Category.CPU_OP)
    scopes = trace.where(is_optimizer, Category.ANNOTATION)
    tracks = s.track[calls]
    optimizers = np.array(without_closures(context, scopes.tolist()), np.int64)
    codes = np.full(len(calls), 0 if len(backward) else 3, np.int64)
    for code, rows in ((1, backward), (2, optimizers)):
        for track in distinct(tracks).tolist():
            own = rows[s.track[rows] == track]
            codes[(tracks == track) & _within(s.ts[calls], s.ts[own], s.end[own])] = code
    return codes


def _within(at: Int64, begins: Int64, ends: Int64) -> np.ndarray:
    """Return which of these times lie in any of these intervals."""
    if not len(begins):
        return np.zeros(len(at), bool)
    order = np.argsort(begins, kind="stable")
    reached = np.maximum.accumulate(ends[order])
    place = np.searchsorted(begins[order], at, side="right") - 1
    inside: np.ndarray = (place >= 0) & (at < reached[place])
    return inside


def _split(context: Context, breaks: GraphBreaks, places: Sequence[int], findings: dict[int, Finding]) -> Split:
    first = places[0]
    finding = findings.get(int(breaks.detail[first])) if breaks.kind[first] == SYNC else None
    paused = sum(int(breaks.detail[p]) for p in places) if breaks.kind[first] not in (SYNC, LOADER) else 0
    return Split(
        what=_what(context, breaks, first, findings),
        source=(finding.where.in_library or finding.where.source) if finding else None,
        finding=finding.id if finding else "",
        per_step=len(places) / context.count,
        us=paused / context.count / 1e3,
    )


def _what(context: Context, breaks: GraphBreaks, place: int, findings: dict[int, Finding]) -> str:
    kind = int(breaks.kind[place])
    if kind == SYNC:
        finding = findings.get(int(breaks.detail[place]))
        return finding.diagnosis.title if finding else "a wait for the device"
    return {STEP: "", LOADER: "the loader"}.get(kind, _other_work(context, int(breaks.at[place])))


def _other_work(context: Context, at: int) -> str:
    """Return a phrase for other work of the host, with the op that launching continues with."""
    s, calls = context.trace.slices, context.launch_calls
    place = int(np.searchsorted(s.ts[calls], at))
    op = context.op(int(calls[place])) if place < len(calls) else ""
    return f"other work of the host, before {op}" if op else "other work of the host"


def _by_call(context: Context) -> dict[int, Finding]:
    return {call: f for f in context.findings for o in f.occurrences for call in o.sync.calls}
