"""Decide how sure the gains of a first screen are, and the one reason that a reader is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Confidence
from syncscan.model.step import Bound, ShareBasis
from syncscan.report import dry_run, program_run, timed_steps
from syncscan.report.front_changes import LEAST_MAY, ListedChange, gain_of, removed_by
from syncscan.report.front_places import Hottest, short_line
from syncscan.report.phrases import real, replayed
from syncscan.report.units import duration

ROUGH = 0.25
"""Uncertainty of the step's time from which no gain is sure."""

Sure = Literal["yes", "partly", "no"]


def sureness_of(
    analysis: Analysis, changes: Sequence[ListedChange], hottest: Hottest | None, step: str
) -> tuple[Sure, str]:
    """Return how sure the gains are, and the reason in a sentence; `step` is the step's time in words."""
    if dry_run.is_dry(analysis):
        covered = analysis.trace.info.capture.coverage
        gaps = covered is not None and bool(covered.gaps)
        return ("partly", "Some ops weren't recognized.") if gaps else ("yes", "Every op that ran was recognized.")
    if lacks := [s for s in analysis.integrity.sentences() if s]:
        return "no", lacks[0]
    if analysis.step.outlook and analysis.step.outlook.first_use:
        return "no", f"{analysis.step.outlook.first_use}."
    if analysis.step.bound is Bound.UNKNOWN:
        return "no", "Nothing could be projected."
    doubt = timed_steps.uncertainty(analysis)
    timed = f"±{doubt:.0%} over {timed_steps.count(analysis)} timed steps"
    if doubt >= 1.0:
        return "no", f"Of the line, yes; of any gain: {timed}." if hottest else f"{timed}."
    unexplained = analysis.step.recoverable_us is None and real(analysis.findings)
    if (changes and changes[0].gain is None) or (unexplained and not changes):
        return "no", "No gain could be projected."
    if unexplained:
        return "partly", "By samples without the profiler; the recorded steps waited less."
    if changes and (changes[0].may or changes[0].gain_low <= 0.0):
        return "no", "The range includes 0."
    if reason := next(_doubts(analysis, changes, timed if doubt >= ROUGH else "", step), ""):
        return "partly", reason
    if not analysis.findings:
        return "yes", "The step is steady, and nothing in it waits for the device."
    if not changes:
        return "yes", "The step is steady, and it is projected to take as long without its syncs."
    return "yes", "The step is steady, and the whole range is a gain."


def _doubts(analysis: Analysis, changes: Sequence[ListedChange], timed: str, step: str) -> Iterator[str]:
    """Yield what keeps a gain from being sure, the most telling first."""
    mean = _mean_outside(analysis)
    if timed:
        yield f"{timed}; the run's mean is {duration(mean)}." if mean else f"{timed}."
    if mean:
        yield f"The run's mean is {duration(mean)}, outside of {step}."
    if analysis.step.device_share_basis is ShareBasis.ESTIMATED:
        guess = analysis.step.guessed_overhead
        share = f"{guess:.0%} of host time" if guess else "its share"
        yield f"The step wasn't timed without the profiler: {share} is an estimate."
    if not changes:
        high = (analysis.step.recoverable_range_us or (0.0, 0.0))[1] / max(1.0, replayed(analysis.step))
        if high >= LEAST_MAY and real(analysis.findings):
            yield f"Without its syncs, the step may be 0 to {high:.0%} shorter."
        return
    members = removed_by(analysis, changes)
    if any(f.confidence is not Confidence.HIGH for f in members):
        yield "That these waits are the cause is likely, not certain."
    if members and not any(map(short_line, members)):
        yield "The recording has no source lines."
    low, whole = changes[-1].after_high_us, replayed(analysis.step)
    least, most = (whole - low) / whole, (whole - changes[-1].after_low_us) / whole
    if least < 0.5 * gain_of(changes):
        yield f"The range is wide, {100 * max(0.0, least):.0f} to {most:.0%}."


def _mean_outside(analysis: Analysis) -> float:
    """Return the run's mean step, where the timed steps are steadier than their distance from it; else 0."""
    run, timed = analysis.run, analysis.step.unprofiled_us
    if run is None or run.steps_share is None or run.mean_us is None or not timed:
        return 0.0
    mean = run.mean_us * run.steps_share
    return mean if abs(mean - timed) > max(program_run.OFF, timed_steps.uncertainty(analysis)) * timed else 0.0
