"""The measured step and what bounds it: what `cost` measures, `whatif` completes, and every report leads with."""

from __future__ import annotations

import enum
from dataclasses import dataclass

BOUND_FROM = 0.9
"""What works at least this part of a step bounds it: the device, or the host."""


class Bound(str, enum.Enum):
    """What a step's time is bound by."""

    DEVICE = "device"
    HOST = "host"
    SYNC = "sync"
    INPUT = "input"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class StepSummary:
    """The measured step, means over the analysed steps in µs, and what bounds it."""

    count: int
    observed_us: float
    """Throughput: host and device both done, in the steady state of many such steps."""
    host_us: float
    """The host's part: how long the step lasts on its thread."""
    wait_us: float
    device_busy_us: float
    device_idle_us: float
    bubble_us: float
    input_us: float
    """Time inside the DataLoader's `__next__` on the step's thread."""
    bound: Bound
    reason: str
    """One sentence: the numbers that `bound` rests on."""
    unprofiled_us: float | None = None
    """The same step without the profiler, where capture timed it or the user gave it."""
    recoverable_us: float | None = None
    recoverable_range_us: tuple[float, float] | None = None
    advice: tuple[str, ...] = ()
    """Sentences that follow from the replay: what to do, or that nothing is to be gained."""
