"""Build the events that syncscan adds to a trace: findings, steps, idle devices, delayed launches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from syncscan.facts.device_work import DeviceWork
from syncscan.model.analysis import Analysis
from syncscan.model.arrays import Int64
from syncscan.model.finding import Finding, Severity, SyncPoint
from syncscan.model.interval import Interval
from syncscan.model.trace import CALLS, DRAWN, Trace
from syncscan.report.front import front_of
from syncscan.report.phrases import USES, certainty, in_library, place, sentences
from syncscan.report.story import FindingText, finding_texts
from syncscan.report.units import duration, range_of, within
from syncscan.viewers.annotate.idle import IdleTimes, idle_times
from syncscan.viewers.annotate.lanes import AddedLanes, Arrows, Drawn

_COLORS = {
    Severity.HIGH: "rail_animation",
    Severity.MEDIUM: "rail_idle",
    Severity.LOW: "startup",
    Severity.INFO: "grey",
}
"""Chrome trace viewer's names for red, orange, yellow and grey, bright enough for black text."""
_IDLE_COLORS = {"sync": "rail_animation", "input": "rail_idle", "host": "grey"}
_STEP_COLOR = "rail_response"


def added_events(analysis: Analysis, around: Interval | None = None, perfetto: bool = False) -> Iterator[bytes]:
    """Yield the JSON text of the added events; nothing is added to a trace that has these tracks already."""
    t = analysis.trace
    if t.info.drawn:
        return
    lanes = AddedLanes(t.tracks, perfetto)
    yield from lanes.process("syncscan")
    for name, slices, arrows in _findings(analysis):
        yield from lanes.row(name, f"{DRAWN}finding", _touching(slices, around), arrows)
    if t.steps:
        yield from lanes.row("steps", f"{DRAWN}step", _touching(_steps(analysis), around))
    for device in t.cached(DeviceWork).devices:
        idle = _within(idle_times(analysis, device), around)
        if len(idle.begin):
            kinds = [_idle_kind(cause) for cause in idle.causes]
            yield from lanes.row_apart(f"device {device} idle", f"{DRAWN}idle", idle, kinds)


def _touching(slices: list[Drawn], around: Interval | None) -> list[Drawn]:
    return [s for s in slices if around is None or around.touches(s.ts, s.end)]


def _findings(analysis: Analysis) -> Iterator[tuple[str, list[Drawn], Arrows]]:
    """Yield each waiting host thread's row name, its sync points, and arrows to the launches they delayed."""
    t = analysis.trace
    by_track: dict[int, list[tuple[FindingText, SyncPoint]]] = {}
    for finding in finding_texts(analysis):
        for o in finding.of.occurrences:
            by_track.setdefault(o.track, []).append((finding, o))
    launches = _launches(t) if by_track else np.zeros(0, np.int64)
    for track in sorted(by_track):
        own = by_track[track]
        name = "findings" if len(by_track) == 1 else f"findings, {own[0][1].where.thread or t.tracks[track].tid}"
        begins = _begins(t, launches, track)
        arrows = {o.ts: (ts, t.tracks[track]) for _, o in own if (ts := _delayed(o, begins)) is not None}
        yield name, [_finding_slice(finding, o) for finding, o in own], arrows


def _finding_slice(finding: FindingText, o: SyncPoint) -> Drawn:
    args = _finding_args(finding.number + 1, finding.of, o)
    return Drawn(o.ts, o.end, _short(finding), args, _COLORS[finding.of.severity])


def _short(finding: FindingText) -> str:
    """Return a slice's text: what removal saves, or the wait where that isn't projected, and the rule."""
    if finding.of.recoverable_us is not None:
        return f"saves {finding.saves} · {finding.of.rule}"
    return finding.of.rule if finding.of.wait_us is None else f"waits {finding.waits} · {finding.of.rule}"


def _finding_args(number: int, f: Finding, o: SyncPoint) -> dict[str, Any]:
    """Return what a click shows: text for readers, and µs under the JSON report's keys for queries (PerfettoSQL)."""
    gain = f.recoverable_us
    args = {
        "title": f.title,
        "rule": f"{f.rule} ({f.cause.value})",
        "line": _line(o) or "unknown",
        "library's line": in_library(o.where),
        "scope": " > ".join(o.where.scope),
        "op": o.where.op,
        "call": o.api,
        "wait": _both(o.wait_ns, f.wait_us),
        "bubble": _both(o.bubble_ns, f.bubble_us),
        "recoverable": _gain(f),
        "fix": f.fix,
        "safe to remove": USES[o.where.value],
        "fine when": f.when_fine,
        "severity": f"{f.severity.value}, confidence {f.confidence.value}",
        "finding": f"{number}: {f.id}",
        "id": f.id,
        "wait_us": None if f.wait_us is None else o.wait_ns / 1000,
        "bubble_us": None if f.bubble_us is None else o.bubble_ns / 1000,
        "recoverable_us": gain,
        "per_step": round(f.per_step, 3),
    }
    return {k: v for k, v in args.items() if v not in ("", None)}


def _both(here_ns: int, a_step_us: float | None) -> str:
    if a_step_us is None:
        return "can't be measured in this trace"
    return f"{duration(here_ns / 1000)} here, {duration(a_step_us)} per step (measured)"


def _gain(f: Finding) -> str:
    us, limits = f.recoverable_us, f.recoverable_range_us
    if us is None or limits is None:
        return "not projected"
    gain = f"{within(us, limits)} per step, {range_of(limits)} (projected)"
    return sentences(gain, f.untold) if f.untold else gain


def _line(o: SyncPoint) -> str:
    source = o.where.source
    return f"{place(source)} ({certainty(source)})" if source else ""


def _launches(t: Trace) -> Int64:
    """Return the rows of calls that started device work, ordered by track and time."""
    calls = np.flatnonzero(t.is_category(*CALLS))
    return calls[t.started_work(calls)]


def _begins(t: Trace, launches: Int64, track: int) -> Int64:
    own = t.track_rows(track)
    first, behind = np.searchsorted(launches, [own.start, own.stop])
    begins: Int64 = t.slices.ts[launches[first:behind]]
    return begins


def _delayed(o: SyncPoint, launches: Int64) -> int | None:
    """Return when its thread launched next after a sync point that waited; None without a wait or a launch."""
    k = int(launches.searchsorted(o.end))
    return launches.item(k) if (o.wait_ns or o.bubble_ns) and k < len(launches) else None


def _steps(analysis: Analysis) -> list[Drawn]:
    front = front_of(analysis)
    conclusion = {"verdict": front.verdict, "reason": front.together}
    return [
        Drawn(s.ts, s.end, f"step {s.number}", {"length": duration((s.end - s.ts) / 1000), **conclusion}, _STEP_COLOR)
        for s in analysis.trace.steps
    ]


def _within(idle: IdleTimes, around: Interval | None) -> IdleTimes:
    if around is None:
        return idle
    touched = slice(idle.end.searchsorted(around.begin), idle.begin.searchsorted(around.end, side="right"))
    return IdleTimes(idle.begin[touched], idle.end[touched], idle.cause[touched], idle.causes)


def _idle_kind(cause: Finding | str) -> Drawn:
    kind = cause if isinstance(cause, str) else "sync"
    name, args = f"idle: {kind}", {"cause": _CAUSES[kind]}
    if isinstance(cause, Finding):
        name += f" · {cause.rule}"
        args |= {"title": cause.title, "fix": cause.fix, "finding": cause.id}
    return Drawn(0, 0, name, args, _IDLE_COLORS[kind])


_CAUSES = {
    "sync": "The host launched too late because it was blocked in a sync.",
    "input": "The host waited for the DataLoader.",
    "host": "The host launched too late, but not because of a sync.",
}
