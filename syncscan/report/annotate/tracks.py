"""From an Analysis to the events that syncscan adds to a trace: findings, steps, idle devices, held-up launches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from syncscan.facts.device_work import DeviceWork
from syncscan.model.analysis import Analysis
from syncscan.model.arrays import Int64
from syncscan.model.finding import Finding, Occurrence, Severity
from syncscan.model.interval import Interval
from syncscan.model.step import StepSummary
from syncscan.model.trace import CALLS, DRAWN, Trace
from syncscan.report.annotate.idle import Cause, IdleTimes, idle_times
from syncscan.report.annotate.lanes import Arrow, Drawn, Kind, Lanes, Times
from syncscan.report.phrases import USES, certainty, in_library, place, sentences
from syncscan.report.story import ToldFinding, story_of
from syncscan.report.units import duration

_COLORS = {
    Severity.HIGH: "rail_animation",
    Severity.MEDIUM: "rail_idle",
    Severity.LOW: "startup",
    Severity.INFO: "grey",
}
"""Red, orange, yellow and grey by their names in Chrome's trace viewer, bright enough for black text on them."""
_IDLE_COLORS = {"sync": "rail_animation", "input": "rail_idle", "host": "grey"}
_STEP_COLOR = "rail_response"


def added_events(analysis: Analysis, around: Interval | None = None, perfetto: bool = False) -> Iterator[bytes]:
    """The JSON text of one added event after the other.

    A copy of a copy is that copy: nothing is added to a trace that has these tracks already.

    Args:
        analysis: of the trace that the events are added to.
        around: only what touches these times; None for all.
        perfetto: name rows and slices for Perfetto.
    """
    t = analysis.trace
    if t.info.drawn:
        return
    lanes = Lanes(t.tracks, perfetto)
    yield from lanes.process("syncscan")
    for name, slices, arrows in _findings(analysis):
        yield from lanes.row(name, f"{DRAWN}finding", _touching(slices, around), arrows)
    if t.steps:
        yield from lanes.row("steps", f"{DRAWN}step", _touching(_steps(analysis), around))
    for device in t.kept(DeviceWork).devices:
        idle = idle_times(analysis, device)
        times, kinds = _times(idle, around), [_idle_kind(cause) for cause in idle.causes]
        if len(times.begin):
            yield from lanes.row_apart(f"device {device} idle", f"{DRAWN}idle", times, kinds)


def _touching(slices: list[Drawn], around: Interval | None) -> list[Drawn]:
    return [s for s in slices if around is None or around.touches(s.ts, s.end)]


def _findings(analysis: Analysis) -> Iterator[tuple[str, list[Drawn], list[Arrow]]]:
    """One row a host thread that waits: its name, its sync points, and the launches they held up."""
    t = analysis.trace
    by_track: dict[int, list[tuple[ToldFinding, Occurrence]]] = {}
    for told in story_of(analysis).findings:
        for o in told.of.occurrences:
            by_track.setdefault(o.sync.track, []).append((told, o))
    launches = _launches(t) if by_track else np.zeros(0, np.int64)
    for track in sorted(by_track):
        mine = by_track[track]
        name = "findings" if len(by_track) == 1 else f"findings, {mine[0][1].where.thread or t.tracks[track].tid}"
        begins = _begins(t, launches, track)
        arrows = [a for _, o in mine if (a := _arrow(t, o, begins))]
        yield name, [_finding_slice(told, o, analysis.step) for told, o in mine], arrows


def _finding_slice(told: ToldFinding, o: Occurrence, step: StepSummary) -> Drawn:
    args = _finding_args(told.number + 1, told.of, o, step)
    return Drawn(o.sync.ts, o.sync.end, _short(told, step), args, _COLORS[told.severity])


def _short(told: ToldFinding, step: StepSummary) -> str:
    """What fits on a slice: what is saved, or waited where that isn't projected, and the rule."""
    if told.of.gain:
        return f"saves {told.saves} · {told.rule}"
    return told.rule if step.waits_withheld else f"waits {told.waits} · {told.rule}"


def _finding_args(number: int, f: Finding, o: Occurrence, step: StepSummary) -> dict[str, Any]:
    """What a click shows: in words for a reader, and in µs for queries (PerfettoSQL) under the names of the JSON."""
    gain = f.gain.recoverable_us if f.gain else None
    args = {
        "title": f.diagnosis.title,
        "rule": f"{f.rule} ({f.diagnosis.cause.value})",
        "line": _line(o) or "unknown",
        "library's line": in_library(o.where),
        "scope": " > ".join(o.where.scope),
        "op": o.where.op,
        "call": o.sync.api,
        "wait": _both(o.cost.wait_ns, f.wait_us, step),
        "bubble": _both(o.cost.bubble_ns, f.bubble_us, step),
        "recoverable": _gain(f),
        "fix": f.diagnosis.fix,
        "safe to remove": USES[o.where.use],
        "fine when": f.diagnosis.when_fine,
        "severity": f"{f.severity.value}, confidence {f.confidence.value}",
        "finding": f"{number}: {f.id}",
        "id": f.id,
        "wait_us": None if step.waits_withheld else o.cost.wait_ns / 1000,
        "bubble_us": None if step.waits_withheld else o.cost.bubble_ns / 1000,
        "recoverable_us": gain,
        "per_step": round(f.per_step, 3),
    }
    return {k: v for k, v in args.items() if v not in ("", None)}


def _both(here_ns: int, a_step_us: float, step: StepSummary) -> str:
    if step.waits_withheld:
        return "can't be measured in this trace"
    return f"{duration(here_ns / 1000)} here, {duration(a_step_us)} a step (measured)"


def _gain(f: Finding) -> str:
    if f.gain is None:
        return "not projected"
    low, high = f.gain.range_us
    said = f"{duration(f.gain.recoverable_us)} a step, {duration(low)} to {duration(high)} (projected)"
    return sentences(said, f.gain.untold) if f.gain.untold else said


def _line(o: Occurrence) -> str:
    source = o.where.source
    return f"{place(source)} ({certainty(source)})" if source else ""


def _launches(t: Trace) -> Int64:
    """Rows of the calls that started device work, in row order: by track, then by time."""
    calls = np.flatnonzero(t.is_category(*CALLS))
    return calls[t.started_work(calls)]


def _begins(t: Trace, launches: Int64, track: int) -> Int64:
    """When the launches of a thread begin, ascending."""
    own = t.track_rows(track)
    first, behind = np.searchsorted(launches, [own.start, own.stop])
    begins: Int64 = t.slices.ts[launches[first:behind]]
    return begins


def _arrow(t: Trace, o: Occurrence, launches: Int64) -> Arrow | None:
    """From a sync point that waited to the next launch of its thread; None where nothing waited or nothing followed."""
    if not (o.cost.wait_ns or o.cost.bubble_ns):
        return None
    k = int(launches.searchsorted(o.sync.end))
    if k == len(launches):
        return None
    return Arrow("held up by a sync", o.sync.ts, launches.item(k), t.tracks[o.sync.track])


def _steps(analysis: Analysis) -> list[Drawn]:
    """The marked steps; a click shows what bounds them."""
    story = story_of(analysis)
    said = {"verdict": story.verdict, "reason": story.opening}
    return [
        Drawn(s.ts, s.end, f"step {s.number}", {"length": duration((s.end - s.ts) / 1000), **said}, _STEP_COLOR)
        for s in analysis.trace.steps
    ]


def _times(idle: IdleTimes, around: Interval | None) -> Times:
    begin, end, cause = idle.begin, idle.end, idle.cause
    if around is None:
        return Times(begin, end, cause)
    touched = slice(end.searchsorted(around.begin), begin.searchsorted(around.end, side="right"))
    return Times(begin[touched], end[touched], cause[touched])


def _idle_kind(cause: Cause) -> Kind:
    name, args = f"idle: {cause.kind}", {"cause": _CAUSES[cause.kind]}
    if cause.finding:
        name += f" · {cause.finding.rule}"
        args |= {
            "title": cause.finding.diagnosis.title,
            "fix": cause.finding.diagnosis.fix,
            "finding": cause.finding.id,
        }
    return Kind(name, args, _IDLE_COLORS[cause.kind])


_CAUSES = {
    "sync": "The host had been held in a sync and launched too late.",
    "input": "The host waited for the DataLoader.",
    "host": "The host launched too late, without having been held in a sync.",
}
