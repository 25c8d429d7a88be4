"""From a Projector to what its findings would gain: each alone, all together, the sets worth removing, and advice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from syncscan.model.finding import Finding, Gain, Severity
from syncscan.model.projection import Group, Overlap, Projection
from syncscan.model.step import Bound, StepSummary
from syncscan.whatif.advice import advice
from syncscan.whatif.calibrated_step import CalibratedStep
from syncscan.whatif.groups import worth_removing
from syncscan.whatif.overlap import overlaps
from syncscan.whatif.projector import Projector

WEIGHED = 25
"""Findings whose range is sought with all replays, those that cost the most; so a trace with hundreds stays fast."""


@dataclass(frozen=True, slots=True)
class Gains:
    """The step and its findings with what removing them would gain; the findings sorted by that."""

    step: StepSummary
    findings: tuple[Finding, ...]
    groups: tuple[Group, ...] = ()
    overlaps: tuple[Overlap, ...] = ()


def project_gains(projector: Projector, step: StepSummary) -> Gains:
    """Project every finding alone, all together, and the sets worth removing.

    Gains are µs of the unprofiled step where its time is known (`step.unprofiled_us`), else of the profiled one.

    Args:
        projector: of the trace and its findings.
        step: as measured.

    Returns:
        Step and findings as they were where the trace lacks too much of its steps for a verdict.
    """
    if step.bound is Bound.UNKNOWN or not projector.replayable:
        return Gains(step, projector.findings)
    calibrated = projector.calibrated()
    costliest = sorted(projector.findings, key=lambda f: -(f.wait_us + f.bubble_us))
    found = tuple(sorted((_gained(calibrated, f, n >= WEIGHED) for n, f in enumerate(costliest)), key=_rank))
    removable = [f for f in found if not f.diagnosis.intended]
    together = calibrated.projection(removable)
    groups = _groups(calibrated, removable)
    step = replace(
        step,
        unprofiled_us=projector.unprofiled_us,
        recoverable_us=max(0.0, together.saving_us),
        recoverable_range_us=_saving_range(together),
        advice=advice(removable, groups, together, step.bound is Bound.INPUT),
    )
    return Gains(step, found, groups, overlaps(projector.trace))


def _saving_range(projection: Projection) -> tuple[float, float]:
    low, high = projection.range_us
    return max(0.0, projection.baseline_us - high), max(0.0, projection.baseline_us - low)


def _gained(step: CalibratedStep, finding: Finding, quick: bool) -> Finding:
    projection = step.projection([finding], quick=quick)
    gain = Gain(
        recoverable_us=max(0.0, projection.saving_us),
        range_us=_saving_range(projection),
        moved_us=min(step.moved(finding), finding.wait_us),
    )
    share = gain.recoverable_us / projection.baseline_us if projection.baseline_us else 0.0
    severity = Severity.INFO if finding.diagnosis.intended else Severity.of_share(share)
    return replace(finding, gain=gain, severity=severity)


def _rank(finding: Finding) -> tuple[bool, float, float, str]:
    gain = finding.gain.recoverable_us if finding.gain else 0.0
    return finding.severity is Severity.INFO, -round(gain, 3), -finding.wait_us, finding.id


def _groups(step: CalibratedStep, findings: Sequence[Finding]) -> tuple[Group, ...]:
    gains = {step.number[f.id]: f.gain.recoverable_us if f.gain else 0.0 for f in findings}
    ids = {step.number[f.id]: f.id for f in findings}
    longest = sorted(findings, key=lambda f: -(f.wait_us + f.bubble_us))
    return tuple(
        Group(
            ids=tuple(ids[n] for n in found.members),
            saving_us=(found.before - found.after) * step.unit,
            alone_us=max(gains[n] for n in found.members),
            after_us=found.after * step.unit,
        )
        for found in worth_removing(lambda removed: step.after(removed).period, [step.number[f.id] for f in longest])
    )
