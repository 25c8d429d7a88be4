"""Summarize a whole run of the program from what capture stored of its steps: mean step, and share of each phase."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from syncscan.model import capture
from syncscan.model.program_run import PhaseLine, ProgramRun, RunInterval, RunPhase

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
    ends = [0.0, *accumulate(record.steps_us)]
    phases = sorted(range(len(record.phases)), key=lambda k: -record.phases[k].us)
    place = {number: k for k, number in enumerate(phases)}
    shares = [record.phases[k].us / record.sampled_us if record.sampled_us else 0.0 for k in phases]
    return ProgramRun(
        steps=record.steps,
        watched_us=ends[-1],
        counted=len(counted),
        mean_us=max(0.0, sum(counted) - record.own_us) / len(counted),
        steps_share=max(0.0, 1 - sum(shares)) if record.sampled_us else None,
        phases=tuple(_phase(record.phases[k], record) for k in phases),
        intervals=tuple(
            RunInterval(begin_us=begin, end_us=end, phase=place.get(phase)) for begin, end, phase in record.spans
        ),
        disturbed=_intervals(((first, end) for first, end, _ in record.disturbed), ends),
    )


def _intervals(rows: Iterable[tuple[int, int]], ends: Sequence[float]) -> tuple[RunInterval, ...]:
    last = len(ends) - 1
    return tuple(
        RunInterval(begin_us=ends[min(first, last)], end_us=ends[min(end, last)], phase=None)
        for first, end in rows
        if first < last
    )


def _phase(phase: capture.CapturedPhase, record: capture.RunRecord) -> RunPhase:
    whole, took = record.sampled_us, sum(line.amount for line in phase.lines)
    share = phase.us / whole if whole else 0.0
    return RunPhase(
        kind=phase.kind,
        name=phase.name,
        file=phase.file,
        function=phase.function,
        first=phase.first,
        last=phase.last,
        share=share,
        every=_every(phase.at),
        lines=tuple(
            PhaseLine(file=line.file, line=line.line, function=line.function, share=share * line.amount / took)
            for line in phase.lines
            if took
        ),
        seen_at=next((step for step in phase.at if step >= SETTLED), phase.at[0] if phase.at else None),
    )


def _every(at: Sequence[int]) -> float | None:
    """Return the mean distance between steps in which a phase began, not counting steps that continue it."""
    begins = [k for k in at if k - 1 not in set(at)]
    return (begins[-1] - begins[0]) / (len(begins) - 1) if len(begins) > 1 else None
