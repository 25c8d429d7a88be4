"""From an Analysis to the same with the gain and severity of every finding, the gain of the step, groups and advice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from syncscan.model.analysis import Analysis, Bound
from syncscan.model.finding import Finding, Gain, Severity
from syncscan.model.projection import Group, Projection
from syncscan.whatif.advice import advice
from syncscan.whatif.groups import worth_removing
from syncscan.whatif.overlap import overlaps
from syncscan.whatif.project import Projector, Stage, pipeline, project
from syncscan.whatif.schedule import schedule

WEIGHED = 25
"""Findings whose range is sought with all replays, those that cost the most; so a trace with hundreds stays fast."""


def enrich(analysis: Analysis, *, step_ms: float | None = None) -> Analysis:
    """Project every finding alone, all together, and the sets worth removing.

    Gains are µs of the unprofiled step where its time is known (`step.unprofiled_us`), else of the profiled one.

    Args:
        analysis: as measured.
        step_ms: the step's time without the profiler in ms, if you measured it and capture didn't.

    Returns:
        The analysis with gains, severities and groups, its findings sorted by gain; as it was where the trace lacks too
        much of its steps for a verdict.
    """
    known = step_ms * 1e3 if step_ms else analysis.step.unprofiled_us
    stage = Stage(analysis, known)
    ready = replace(
        analysis,
        replay=partial(project, stage=stage),
        pipelines=partial(pipeline, stage=stage),
        schedules=partial(schedule, stage=stage),
    )
    if analysis.step.bound is Bound.UNKNOWN or not stage.graph.programs:
        return ready
    projector = stage.projector()
    weighed = sorted(analysis.findings, key=lambda f: -(f.wait_us + f.bubble_us))
    found = tuple(sorted((_gained(projector, f, n >= WEIGHED) for n, f in enumerate(weighed)), key=_rank))
    removable = [f for f in found if not f.diagnosis.intended]
    together = projector.projection(removable)
    groups = _groups(projector, removable)
    low, high = together.range_us
    step = replace(
        analysis.step,
        unprofiled_us=known,
        recoverable_us=max(0.0, together.saving_us),
        recoverable_range_us=(max(0.0, together.baseline_us - high), max(0.0, together.baseline_us - low)),
        advice=advice(removable, groups, together, analysis.step.bound is Bound.INPUT),
    )
    return replace(ready, step=step, findings=found, groups=groups, overlaps=overlaps(analysis.trace))


def _gained(projector: Projector, finding: Finding, quick: bool) -> Finding:
    p = projector.projection([finding], quick=quick)
    low, high = p.range_us
    gain = Gain(
        recoverable_us=max(0.0, p.saving_us),
        range_us=(max(0.0, p.baseline_us - high), max(0.0, p.baseline_us - low)),
        moved_us=min(projector.moved(finding), finding.wait_us),
    )
    return replace(finding, gain=gain, severity=_severity(finding, gain, p))


def _severity(finding: Finding, gain: Gain, p: Projection) -> Severity:
    if finding.diagnosis.intended:
        return Severity.INFO
    share = gain.recoverable_us / p.baseline_us if p.baseline_us else 0.0
    return Severity.of_share(share)


def _rank(finding: Finding) -> tuple[bool, float, float, str]:
    gain = finding.gain.recoverable_us if finding.gain else 0.0
    return finding.severity is Severity.INFO, -round(gain, 3), -finding.wait_us, finding.id


def _groups(projector: Projector, findings: Sequence[Finding]) -> tuple[Group, ...]:
    number, unit = projector.stage.number, projector.unit
    gains = {number[f.id]: f.gain.recoverable_us if f.gain else 0.0 for f in findings}
    ids = {number[f.id]: f.id for f in findings}
    longest = sorted(findings, key=lambda f: -(f.wait_us + f.bubble_us))
    return tuple(
        Group(
            ids=tuple(ids[n] for n in s.members),
            saving_us=(s.before - s.after) * unit,
            alone_us=max(gains[n] for n in s.members),
            after_us=s.after * unit,
        )
        for s in worth_removing(lambda removed: projector.after(removed).period, [number[f.id] for f in longest])
    )
