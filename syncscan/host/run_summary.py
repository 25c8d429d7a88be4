"""Summarize a whole run of the program from what capture stored of its steps: mean step, and share of each phase."""

from __future__ import annotations

from collections.abc import Sequence

from syncscan.model import capture
from syncscan.model.program_run import ProgramRun, RunPhase

SETTLED = 8
"""The step from which on a capture can have warmed up before a phase comes."""


def run_of(record: capture.RunRecord | None) -> ProgramRun | None:
    """Return the summary of a run; None if capture stored none, or disturbed all of its steps."""
    if record is None:
        return None
    disturbed = {k for first, end, _ in record.disturbed for k in range(first, min(end, len(record.steps_us)))}
    first, end = record.window
    counted = [us for k, us in enumerate(record.steps_us) if first <= k < end and k not in disturbed]
    if not counted:
        return None
    phases = sorted(record.phases, key=lambda phase: -phase.us)
    inside = sum(phase.us for phase in phases)
    return ProgramRun(
        steps=record.steps,
        watched_us=sum(record.steps_us),
        counted=len(counted),
        mean_us=max(0.0, sum(counted) - record.own_us) / len(counted),
        steps_share=max(0.0, 1 - inside / record.sampled_us) if record.sampled_us else None,
        phases=tuple(_phase(phase, record.sampled_us) for phase in phases),
    )


def _phase(phase: capture.CapturedPhase, whole: float) -> RunPhase:
    return RunPhase(
        kind=phase.kind,
        name=phase.name,
        file=phase.file,
        function=phase.function,
        first=phase.first,
        last=phase.last,
        share=phase.us / whole if whole else 0.0,
        every=_every(phase.at),
        seen_at=next((step for step in phase.at if step >= SETTLED), phase.at[0] if phase.at else None),
    )


def _every(at: Sequence[int]) -> float | None:
    """Return the mean distance between steps in which a phase began, not counting steps that continue it."""
    begins = [k for k in at if k - 1 not in set(at)]
    return (begins[-1] - begins[0]) / (len(begins) - 1) if len(begins) > 1 else None
