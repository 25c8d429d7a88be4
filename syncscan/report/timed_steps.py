"""Say how steady the timed steps are: their time with no more digits than its range supports, and what they aren't."""

from __future__ import annotations

import math

from syncscan.model.analysis import Analysis
from syncscan.model.duration import duration
from syncscan.model.step_times import MOST, NOISY, StepTimes

UNSTEADY = 1.0
"""Uncertainty of the median from which the steps have no usual time."""
LIKELY = 100
"""Steps to time where none were."""
ROUGH = 0.5
"""Uncertainty from which one digit is all that is known."""


def unprofiled(analysis: Analysis) -> str:
    """Return the step's time without the profiler: `46.1 ms`, `46 ms`, `about 50 ms`; empty where it isn't known."""
    us = analysis.step.unprofiled_us
    return known_within(us, uncertainty(analysis)) if us else ""


def known_within(us: float, within: float) -> str:
    """Return a time in µs with the digits that this relative uncertainty leaves."""
    if within < NOISY:
        return duration(us)
    return f"about {duration(us, 1)}" if within >= ROUGH else duration(us, 2)


def sentence(analysis: Analysis) -> str:
    """Return how far the timed steps scatter; empty unless by more than their median."""
    timed, mean = _timed(analysis), mean_us(analysis)
    if timed is None or not mean:
        return ""
    least, most = duration(min(timed.each)), duration(max(timed.each))
    median = f"their median, {unprofiled(analysis)}, is uncertain by ±{timed.uncertainty or 0.0:.0%}"
    return (
        f"The steps are unsteady: {len(timed.each)} steps without the profiler took {least} to {most}, on average "
        f"{known_within(mean, NOISY)}; {median}, and so are all gains."
    )


def _timed(analysis: Analysis) -> StepTimes | None:
    """Return the steps that the capture timed; None without any, or where a user gave the time instead."""
    stored = analysis.trace.info.capture
    if not stored.unprofiled_step_us or analysis.step.unprofiled_us != stored.unprofiled_step_us:
        return None
    return StepTimes(stored.unprofiled_step_us, stored.unprofiled_steps_us, "", stored.unprofiled_period)


def uncertainty(analysis: Analysis) -> float:
    """Return within which part of it the step's time without the profiler is known; 0 where that isn't said."""
    timed = _timed(analysis)
    return timed.uncertainty or 0.0 if timed else 0.0


def count(analysis: Analysis) -> int:
    """Return how many steps the capture timed."""
    timed = _timed(analysis)
    return len(timed.each) if timed else 0


def enough(analysis: Analysis) -> int:
    """Return how many steps to time, so that their time is as certain as the projections from it."""
    timed = _timed(analysis)
    if timed is None or not timed.each:
        return LIKELY
    wanted = len(timed.each) * ((timed.uncertainty or 0.0) / NOISY) ** 2
    return min(MOST, max(2 * len(timed.each), 10 * math.ceil(wanted / 10)))


def mean_us(analysis: Analysis) -> float:
    """Return the mean of unsteady steps, the whole run's without its phases where known, in µs; 0 for steady ones."""
    timed, run = _timed(analysis), analysis.run
    if timed is None or (timed.uncertainty or 0.0) <= UNSTEADY:
        return 0.0
    if run is not None and run.mean_us and run.steps_share:
        return run.mean_us * run.steps_share
    return analysis.trace.info.capture.unprofiled_mean_us or sum(timed.each) / len(timed.each)
