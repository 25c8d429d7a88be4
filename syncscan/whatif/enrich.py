"""From an Analysis to the same with the gain and severity of every finding and the gain of the step."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Gain, Severity
from syncscan.whatif.project import Stage, _Projector, project

HIGH, MEDIUM = 0.05, 0.01
"""Parts of the step from which a gain makes a finding's severity high or medium."""


def enrich(analysis: Analysis, *, step_ms: float | None = None) -> Analysis:
    """Project every finding alone and all together.

    Args:
        analysis: as measured.
        step_ms: the step's time without the profiler in ms, if you measured it and capture didn't.

    Returns:
        The analysis with each finding's gain and severity, sorted by gain, and the step's gain.
    """
    if not analysis.step.count:
        return analysis
    stage = Stage(analysis)
    projector = _Projector(stage, stage.calibration(step_ms))
    found = tuple(sorted((_gained(projector, f) for f in analysis.findings), key=_rank))
    together = projector.projection([f for f in analysis.findings if not f.diagnosis.intended])
    low, high = together.range_us
    step = replace(
        analysis.step,
        unprofiled_us=step_ms * 1e3 if step_ms else analysis.step.unprofiled_us,
        recoverable_us=max(0.0, together.saving_us),
        recoverable_range_us=(max(0.0, together.baseline_us - high), max(0.0, together.baseline_us - low)),
    )
    return replace(analysis, step=step, findings=found, replay=partial(project, stage=stage))


def _gained(projector: _Projector, finding: Finding) -> Finding:
    p = projector.projection([finding])
    low, high = p.range_us
    gain = Gain(
        recoverable_us=max(0.0, p.saving_us),
        range_us=(max(0.0, p.baseline_us - high), max(0.0, p.baseline_us - low)),
        moved_us=projector.moved(finding),
    )
    return replace(finding, gain=gain, severity=_severity(finding, gain, p.baseline_us))


def _severity(finding: Finding, gain: Gain, step_us: float) -> Severity:
    if finding.diagnosis.intended:
        return Severity.INFO
    share = gain.recoverable_us / step_us if step_us else 0.0
    if share >= HIGH:
        return Severity.HIGH
    return Severity.MEDIUM if share >= MEDIUM else Severity.LOW


def _rank(finding: Finding) -> tuple[bool, float, float, str]:
    gain = finding.gain.recoverable_us if finding.gain else 0.0
    return finding.severity is Severity.INFO, -round(gain, 3), -finding.wait_us, finding.id
