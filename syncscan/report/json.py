"""From an Analysis to the JSON that other programs rely on (schema `syncscan.analysis/1`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from syncscan.facts.period import earlier_work, later_work
from syncscan.facts.phases import PhaseSummary, phases_of
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Source
from syncscan.model.json_text import indented
from syncscan.model.projection import Group, Overlap
from syncscan.model.step import DeviceTime, StepSummary
from syncscan.model.trace import Category, Trace
from syncscan.report import dry, habits, host, phrases, program_run, remedies
from syncscan.report.story import conclusion_of
from syncscan.version import __version__

if TYPE_CHECKING:
    from syncscan.model.documents import (
        AnalysisDocument,
        DeviceDocument,
        FindingDocument,
        GroupDocument,
        GuessedPlace,
        Has,
        ListedFinding,
        MeasuredStep,
        OverlapDocument,
        ServedPhase,
        StepsFound,
        TraceDocument,
    )

SCHEMA = "syncscan.analysis/1"


def render(analysis: Analysis) -> str:
    """The analysis as indented JSON; all times in µs, means per step unless the name says otherwise."""
    return indented(document(analysis))


def document(analysis: Analysis) -> AnalysisDocument:
    """The analysis as plain dicts and lists, ready for any encoder."""
    shown = analysis.shown
    conclusion = conclusion_of(analysis, shown)
    return {
        "schema": SCHEMA,
        "syncscan": __version__,
        "trace": _trace(analysis),
        "step": {
            **_step(analysis),
            "verdict": conclusion.verdict,
            "summary": conclusion.summary,
            "advice": list(conclusion.advice),
        },
        "dry_run": dry.document(analysis),
        "findings": [_listed(f, analysis) for f in shown.findings],
        "groups": [_group(g) for g in analysis.groups],
        "habits": habits.document(shown.habits),
        "host": host.document(analysis.host_time),
        "run": program_run.document(analysis),
        "remedies": remedies.document(analysis.remedies, conclusion.remedies),
        "hidden": [{"by": h.option, "findings": h.findings, "habits": h.habits} for h in shown.hidden],
        "overlaps": [_overlap(o) for o in analysis.overlaps],
    }


def _listed(f: Finding, analysis: Analysis) -> ListedFinding:
    """A finding, with what it costs in a recording where a dry run was set beside one."""
    told = cast("ListedFinding", finding(f, analysis.step))
    if analysis.likeness is not None:
        told["like"] = dry.counterpart(f, analysis)
    return told


def _trace(analysis: Analysis) -> TraceDocument:
    t, info = analysis.trace, analysis.trace.info
    return {
        "path": info.path,
        "size_bytes": info.size_bytes,
        "events": info.events,
        "vendor": info.vendor.value,
        "devices": list(info.devices),
        "rank": info.rank,
        "world_size": info.world_size,
        "has": _has(t),
        "integrity": list(analysis.integrity.sentences()),
        "steps_found": _steps_found(analysis),
        "phases": [_phase(p) for p in phases_of(t)],
        "warnings": list(analysis.warnings),
    }


def _steps_found(analysis: Analysis) -> StepsFound:
    found, earlier, later = analysis.trace.steps_found, earlier_work(analysis.trace), later_work(analysis.trace)
    return {
        "by": found.by.value,
        "name": found.name or None,
        "calls": found.calls or None,
        "sentence": phrases.steps_found(analysis),
        "earlier_work_us": earlier.length / 1e3 if earlier else 0.0,
        "later_work_us": later.length / 1e3 if later else 0.0,
    }


def _phase(p: PhaseSummary) -> ServedPhase:
    return {"phase": p.phase.value, "batch": p.batch, "count": p.count, "median_us": p.median_us}


def _has(t: Trace) -> Has:
    return {
        "steps": bool(t.steps),
        "stacks": bool(len(t.frames)) or t.info.with_stack,
        "shapes": t.info.record_shapes,
        "sync_events": bool((t.slices.category == Category.SYNC).any()),
        "exact_lines": bool(t.info.capture.lines.syncs),
    }


def _step(analysis: Analysis) -> MeasuredStep:
    s, untimed = analysis.step, analysis.trace.info.capture.pretended
    return {
        "count": s.count,
        "observed_us": None if untimed else s.observed_us,
        "host_us": None if untimed else s.host_us,
        "wait_us": None if untimed else s.wait_us,
        "device_busy_us": None if untimed else s.device_busy_us,
        "device_idle_us": None if untimed else s.device_idle_us,
        "bubble_us": None if untimed else s.bubble_us,
        "input_us": None if untimed else s.input_us,
        "communication_us": None if untimed else s.communication_us,
        "devices": _devices(s.devices),
        "processes": [
            {"process": p.process, "count": p.count, "observed_us": p.observed_us, "devices": _devices(p.devices)}
            for p in s.processes
        ],
        "device_share": s.device_share,
        "communication_share": s.communication_share,
        "guessed_overhead": s.guessed_overhead,
        "unprofiled_us": s.unprofiled_us,
        "bound": s.bound.value,
        "reason": s.reason,
        "recoverable_us": s.recoverable_us,
        "recoverable_range_us": list(s.recoverable_range_us) if s.recoverable_range_us else None,
    }


def _devices(devices: Sequence[DeviceTime]) -> list[DeviceDocument]:
    return [{"device": d.device, "busy_us": d.busy_us, "communication_us": d.communication_us} for d in devices]


def _group(g: Group) -> GroupDocument:
    return {"ids": list(g.ids), "saving_us": g.saving_us, "alone_us": g.alone_us, "after_us": g.after_us}


def _overlap(o: Overlap) -> OverlapDocument:
    return {"device": o.device, "streams": list(o.streams), "work_us": list(o.work_us), "shared_us": o.shared_us}


def finding(f: Finding, step: StepSummary) -> FindingDocument:
    """One finding of a step as plain dicts and lists; what the trace can't tell is None."""
    d, w = f.diagnosis, f.where
    return {
        "id": f.id,
        "rule": d.rule,
        "name": d.name,
        "cause": d.cause.value,
        "severity": f.severity.value,
        "confidence": f.confidence.value,
        "op": w.op,
        "op_stack": list(w.op_stack),
        "call": f.api,
        "scope": list(w.scope),
        "module": list(w.module),
        "source": _source(w.source),
        "called_from": _source(w.framework),
        "in_loop": w.in_loop,
        "owner": w.owner,
        "phase": w.phase.value,
        "thread": w.thread,
        "count": f.count,
        "per_step": f.per_step,
        "wait_us": None if step.waits_withheld else f.wait_us,
        "bubble_us": None if step.waits_withheld else f.bubble_us,
        "moved_us": f.gain.moved_us if f.gain else None,
        "recoverable_us": f.gain.recoverable_us if f.gain else None,
        "recoverable_range_us": list(f.gain.range_us) if f.gain else None,
        "untold": f.gain.untold if f.gain else "",
        "value": w.use.value,
        "title": d.title,
        "why": d.why,
        "fix": d.fix,
        "when_fine": d.when_fine,
    }


def _source(s: Source | None) -> GuessedPlace | None:
    if s is None:
        return None
    place: GuessedPlace = {"file": s.file, "line": s.line, "function": s.function, "exact": s.exact}
    return place if s.exact else {**place, "candidates": list(s.candidates)}
