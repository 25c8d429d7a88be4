"""Compare the step times of two states, with the margin of error."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Collection, Sequence

from syncscan.gate.differences import Spread, StepChange
from syncscan.gate.state import State, Timing

T95 = (12.7, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10)
"""Student's t for 95 %, two-sided, from one degree of freedom on (NIST, Engineering Statistics Handbook, 1.3.6.7.2)."""
NORMAL = 1.96
"""Student's t for many degrees of freedom."""
STRETCH = 0.18
"""Variation of the profiler's slowdown of a host between recordings: the standard deviation of log(step in the trace /
step without the profiler), 0.17 over 56 recordings without stacks and 0.18 over 7 with (H200, torch 2.11, steps that
work the device less than 90 %). Two recordings of one program lay 1.55 times apart."""
OTHERWISE = 0.6
"""That variation if the profiler's options differ: with stacks a host was slowed by a factor of 2.6, without by 1.5
(geometric means over the same recordings)."""
AGAIN = 0.004
"""Relative standard deviation of a device's time when a step is recorded again: for one device-bound step three
recordings lay 0.2 % apart, for two others 0.03 and 0.5 % (H200, torch 2.11: maskedloss.v0, .v3, zoo.ops)."""
HOST_AGAIN = 0.01
"""That deviation for a host without the profiler: two captures of one host-bound step lay 1.8 % apart
(sample_traces/lines)."""

WANDERS = 2.5
"""Factor from the covariance of neighboring steps to a host's deviation in the next recording. On a shared host, speed
wanders by a tenth over ten to twenty steps and differs minutes later: of 52 processes of one unchanged step (H200,
torch 2.11, 16 shared cores) two recordings of forty steps differed, by this margin, in 3 % of 255 pairs where one
process followed the other and in 7 % of all 6,630; with steps treated as independent, in 77 and 81 %
(`benchmarks.wandering`)."""


def step_change(before: State, after: State) -> StepChange:
    """Return the step times of two states: without the profiler where each recording knows that time, else recorded."""
    sides = before.timings, after.timings
    unprofiled = all(timing.unprofiled_us for side in sides for timing in side)
    old, new = (statistics.fmean(timing.step_us(unprofiled) for timing in side) for side in sides)
    stretch = STRETCH if before.options == after.options else OTHERWISE
    device_before, device_after = (statistics.fmean(timing.device_us for timing in side) for side in sides)
    return StepChange(
        before_us=old,
        after_us=new,
        margin_us=_margin(*sides, None if unprofiled else stretch),
        unprofiled=unprofiled,
        device_us=(device_before, device_after),
        ahead_us=_ahead(*sides),
        why_not=_why_not(before, after),
    )


def _ahead(*sides: Sequence[Timing]) -> tuple[float, float] | None:
    known = [[timing.ahead_us for timing in side if timing.ahead_us is not None] for side in sides]
    return (statistics.fmean(known[0]), statistics.fmean(known[1])) if all(known) else None


def difference(before: Spread, after: Spread) -> float:
    """Return half-width of the 95 % interval around the difference of two means (Welch); 0 without any spread."""
    errors = [x.variance / x.count if x.count else 0.0 for x in (before, after)]
    freedom = [e * e / (x.count - 1) for e, x in zip(errors, (before, after), strict=True) if x.count > 1]
    if not sum(freedom):
        return 0.0
    degrees = int(sum(errors) ** 2 / sum(freedom))
    factor = T95[max(degrees, 1) - 1] if degrees <= len(T95) else NORMAL
    return factor * math.sqrt(sum(errors))


def _margin(before: Sequence[Timing], after: Sequence[Timing], stretch: float | None) -> float:
    """Return the margin, from the spread of recordings if both states have several, else of steps and typical noise.

    `stretch` is how differently the profiler slows the host; None for steps without the profiler.
    """
    unprofiled = stretch is None
    if len(before) > 1 and len(after) > 1:
        return difference(*(Spread.of([timing.step_us(unprofiled) for timing in side]) for side in (before, after)))
    within = difference(
        *(Spread.of([us for timing in side for us in timing.steps(unprofiled)]) for side in (before, after))
    )
    return math.hypot(within, NORMAL * math.hypot(*(_again(side, stretch) for side in (before, after))))


def _again(side: Sequence[Timing], stretch: float | None) -> float:
    """Return the standard error of recording this state again, µs, from its device and its host."""
    errors = []
    for timing in side:
        step = timing.step_us(stretch is None)
        host = _host_again(timing.steps(True)) if stretch is None else stretch
        errors.append(math.hypot(AGAIN * step, host * step * timing.of_host))
    return math.hypot(*errors) / max(1, len(errors))


def _host_again(steps: Sequence[float]) -> float:
    """Return the relative deviation to expect of a host, given consecutive step times."""
    if len(steps) < 2:
        return HOST_AGAIN
    mean = statistics.fmean(steps)
    shared = sum((a - mean) * (b - mean) for a, b in itertools.pairwise(steps)) / (len(steps) - 1)
    return math.hypot(HOST_AGAIN, WANDERS * math.sqrt(max(0.0, shared)) / mean)


def _why_not(before: State, after: State) -> str:
    if before.size != after.size:
        return f"The jobs have {before.facts.ranks} and {after.facts.ranks} ranks."
    if before.steps_by != after.steps_by:
        return "Steps were found in different ways, so a step of one isn't a step of the other."
    if before.devices != after.devices:
        return f"They were recorded on different devices: {_names(before.devices)}, and {_names(after.devices)}."
    return ""


def _names(devices: Collection[str]) -> str:
    return ", ".join(sorted(devices)) or "none that they name"
