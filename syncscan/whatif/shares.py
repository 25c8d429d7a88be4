"""Derive the parts of the unprofiled step from its measured parts and its calibrated replay."""

from __future__ import annotations

import msgspec

from syncscan.model.step import BOUND_FROM, StepSummary
from syncscan.whatif.replay import Replay

NOTABLE = 0.1
"""Least part of a step from which input, communication or syncs bound it."""


class Shares(msgspec.Struct, frozen=True):
    """Parts of a step: how the busiest device spends it, and how long the host waits for its input."""

    device: float = 0.0
    communication: float = 0.0
    """Part in exposed collectives."""
    input: float = 0.0

    @property
    def waits_for_ranks(self) -> bool:
        """Whether other ranks or the network set the step's pace.

        They do if collectives fill what the device's work leaves of the step, or are its largest part: larger than that
        work, and than the time in which the device is idle, for which the step's own host or input is to blame.
        """
        if self.device >= BOUND_FROM or self.communication < NOTABLE:
            return False
        used = self.device + self.communication
        return used >= BOUND_FROM or self.communication >= max(self.device, 1.0 - used)


def shares_of(replay: Replay, period_ns: float, measured: StepSummary) -> Shares:
    """Return the parts of the step that this replay implies for the measured one.

    Args:
        replay: replay of the step as it was; its scales tell how host and device times differ.
        period_ns: the step's time in that replay.
        measured: the step as recorded.
    """
    if not period_ns:
        return Shares()
    device = replay.stretch * 1e3 / period_ns
    return Shares(
        device=min(1.0, measured.device_busy_us * device),
        communication=min(1.0, measured.communication_us * device),
        input=min(1.0, measured.input_us * replay.scale * 1e3 / period_ns),
    )


def in_percent(share: float) -> str:
    """Return a share in whole percent: `3%`; `less than 1%` instead of `0%`."""
    return f"{share:.0%}" if share >= 0.005 else "less than 1%"
