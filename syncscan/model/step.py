"""The measured step and what bounds it: what `cost` measures, `whatif` completes, and every report leads with."""

from __future__ import annotations

import enum

import msgspec

BOUND_FROM = 0.9
"""What works at least this part of a step bounds it: the device, or the host."""


REPEATABILITY = 0.01
"""Two measurements of the same step differ by about this part of it: a smaller saving can't be measured."""


class Bound(str, enum.Enum):
    """What a step's time is bound by."""

    DEVICE = "device"
    HOST = "host"
    SYNC = "sync"
    INPUT = "input"
    COMMUNICATION = "communication"
    UNKNOWN = "unknown"

    @property
    def limit(self) -> str:
        """What limits the step, in words: `the device`; empty where that is unknown."""
        return _LIMITS.get(self.value, "")

    @property
    def verdict(self) -> str:
        """That it does, in a clause: `the device is the limit`."""
        if self is Bound.UNKNOWN:
            return "what limits the step can't be told"
        return f"{self.limit} {'are' if self is Bound.SYNC else 'is'} the limit"


_LIMITS = {
    "device": "the device",
    "host": "the host",
    "sync": "syncs",
    "input": "the input",
    "communication": "communication",
}


class DeviceTime(msgspec.Struct, frozen=True):
    """How one device spends a step, mean µs."""

    device: int
    busy_us: float
    """At work; exposed collectives left out."""
    communication_us: float
    """In exposed collectives: with nothing computed beside them."""


class ProcessSteps(msgspec.Struct, frozen=True):
    """The steps of one of several processes in a trace, as measured; mean µs."""

    process: str
    """Its pid."""
    count: int
    observed_us: float
    devices: tuple[DeviceTime, ...]


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """What the replay of a step without its syncs says, beside which of them to remove."""

    gains: bool
    """Whether removing them gains anything."""
    said: str
    """A sentence: what limits the step then, or why nothing is gained and what to try instead."""
    beside: str
    """The same where something else is known to gain: without what to try; empty where the verdict says it all."""


class StepSummary(msgspec.Struct, frozen=True):
    """The measured step, means over the analysed steps in µs, and what bounds it."""

    count: int
    observed_us: float
    """Throughput: host and device both done, in the steady state of many such steps."""
    host_us: float
    """The host's part: how long the step lasts on its thread."""
    wait_us: float
    device_busy_us: float
    """How long the busiest device works, exposed collectives left out."""
    device_idle_us: float
    """How long it does neither that nor communicate."""
    bubble_us: float
    """The part of that behind syncs."""
    input_us: float
    """Time inside the DataLoader's `__next__` on the step's thread."""
    bound: Bound
    reason: str
    """The numbers that `bound` rests on, a sentence or some."""
    communication_us: float = 0.0
    """In exposed collectives on the busiest device: waiting for other ranks or the network."""
    pageable_us: float = 0.0
    """In copies of pageable memory of which the trace doesn't tell the size, on the busiest device: how much pinning
    saves of them can't be projected."""
    unprofiled_us: float | None = None
    """The same step without the profiler, where capture timed it or the user gave it."""
    recoverable_us: float | None = None
    recoverable_range_us: tuple[float, float] | None = None
    waits_withheld: bool = False
    """Waits and idle time can't be measured, and say nothing where they are 0."""
    devices: tuple[DeviceTime, ...] = ()
    """Each device that the step uses, the busiest first."""
    processes: tuple[ProcessSteps, ...] = ()
    """Of a trace that holds several, each, this step's own first."""
    device_share: float | None = None
    """The part of the step as it is without the profiler in which the busiest device works; None without a verdict."""
    communication_share: float | None = None
    """The part that it spends in exposed collectives."""
    guessed_overhead: float | None = None
    """The part of the host's time in the trace that is taken to be the profiler's, where no measurement tells it."""
    host_scale: float | None = None
    """What is left of the host's own time without the profiler, by the calibration; None where no measurement tells."""
    outlook: Outlook | None = None
    """What limits the step without its syncs, or why that gains nothing; None where nothing was replayed."""


NOT_MEASURED = StepSummary(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, Bound.UNKNOWN, "")
"""Nothing was measured of the step."""
