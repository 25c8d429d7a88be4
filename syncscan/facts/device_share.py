"""Say how much of a step the device is busy: in the trace, without the profiler, and on what basis."""

from __future__ import annotations

from syncscan.model.step import ShareBasis, StepSummary

_ALIKE = 0.015
"""Two shares that lie no further apart than this are stated as one: the recorded one."""


def device_works(step: StepSummary) -> str:
    """Return the device's share: `45% of the step in the trace, about 79% without the profiler (estimated)`.

    Bars and times of a report are those of the recorded step, so its share comes first; the unprofiled step's follows
    with its basis where it differs.
    """
    recorded = step.recorded_device_share
    unprofiled = recorded if step.device_share is None else step.device_share
    return shares(recorded, unprofiled, step.device_share_basis, " of the step")


def shares(recorded: float, unprofiled: float, basis: ShareBasis | None, of: str = "") -> str:
    """Return two shares of a step in words; the recorded one alone where they hardly differ."""
    if alike(recorded, unprofiled):
        return f"{recorded:.0%}{of}"
    return f"{recorded:.0%}{of} in the trace, {without_profiler(unprofiled, basis)}"


def without_profiler(share: float, basis: ShareBasis | None, of: str = "") -> str:
    """Return a share of the unprofiled step with its basis: `about 79% without the profiler (estimated)`."""
    estimated = basis is ShareBasis.ESTIMATED
    return f"{'about ' if estimated else ''}{share:.0%}{of} without the profiler{' (estimated)' if estimated else ''}"


def alike(recorded: float, unprofiled: float | None) -> bool:
    """Return whether a share of the unprofiled step is unknown, or hardly differs from the recorded step's."""
    return unprofiled is None or abs(recorded - unprofiled) <= _ALIKE
