"""The measured step, what bounds it, and the numbers that are withheld for missing data.

`cost` measures it, `whatif` completes it, every report shows it first.
"""

from __future__ import annotations

import enum

import msgspec

BOUND_FROM = 0.9
"""Fraction of a step from which the device or the host counts as its bound."""


REPEATABILITY = 0.01
"""Relative difference between two measurements of the same step: smaller savings can't be measured."""


class Bound(str, enum.Enum):
    """The bound of a step's time."""

    DEVICE = "device"
    HOST = "host"
    SYNC = "sync"
    INPUT = "input"
    COMMUNICATION = "communication"
    UNKNOWN = "unknown"

    @property
    def limit(self) -> str:
        """The limit in words: `the device`; empty where unknown."""
        return _LIMITS.get(self.value, "")

    @property
    def verdict(self) -> str:
        """The verdict as a clause: `the device is the limit`."""
        if self is Bound.UNKNOWN:
            return "the step's limit is unknown"
        return f"{self.limit} {'are' if self is Bound.SYNC else 'is'} the limit"


_LIMITS = {
    "device": "the device",
    "host": "the host",
    "sync": "syncs",
    "input": "the input",
    "communication": "communication",
}


class ShareBasis(str, enum.Enum):
    """Basis of the device's share of the unprofiled step.

    Measured: the step was timed without the profiler. Estimated: its time is an estimate of the profiler's overhead.
    Recorded: the share is of the step in the trace.
    """

    MEASURED = "measured"
    ESTIMATED = "estimated"
    RECORDED = "recorded"


class DeviceTime(msgspec.Struct, frozen=True):
    """How one device spends a step, mean µs."""

    device: int
    busy_us: float
    """Time at work, without exposed collectives."""
    communication_us: float
    """Time in exposed collectives: with nothing computed beside them."""


class RunAhead(msgspec.Struct, frozen=True):
    """How far the host is ahead of the device, µs: how much launched work is left at a launch; negative where late."""

    least_us: float
    """At the launch of a step that is least ahead; the median over the steps."""
    median_us: float
    """At half of a step's launches at least; the median over the steps."""


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """A replay's conclusion on a step without its syncs, besides which ones to remove."""

    gains: bool
    """Whether removing them gains anything."""
    after: Bound | None = None
    """The step's limit without its syncs; None where removing them gains nothing."""
    device_share: float = 0.0
    """Fraction of that step in which the device is busy."""
    first_use: str = ""
    """Which calls that are made once take most of the recorded steps, with the advice; empty where none do."""


class StepSummary(msgspec.Struct, frozen=True):
    """The measured step, means over the analyzed steps in µs, and what bounds it."""

    count: int
    observed_us: float
    """Throughput: host and device both done, in the steady state of many such steps."""
    host_us: float
    """How long the step lasts on its host thread."""
    wait_us: float
    device_busy_us: float
    """How long the busiest device is busy, without exposed collectives."""
    device_idle_us: float
    """How long it neither works nor communicates."""
    bubble_us: float
    """The part of that behind syncs."""
    input_us: float
    """Time inside the DataLoader's `__next__` on the step's thread."""
    bound: Bound
    reason: str
    """The numbers behind `bound`, in sentences."""
    communication_us: float = 0.0
    """Time in exposed collectives on the busiest device: waiting for other ranks or the network."""
    unprofiled_us: float | None = None
    """Step time without the profiler, timed by capture or given by the user."""
    recoverable_us: float | None = None
    recoverable_range_us: tuple[float, float] | None = None
    waits_withheld: bool = False
    """Whether waits and idle time can't be measured, and are 0 for that reason."""
    run_ahead: RunAhead | None = None
    """None where no call launches work."""
    devices: tuple[DeviceTime, ...] = ()
    """Devices that the step uses, busiest first."""
    processes: tuple[str, ...] = ()
    """Pids of the processes of a trace that holds several, this step's own first."""
    device_share: float | None = None
    """Fraction of the unprofiled step in which the busiest device is busy; None without a verdict."""
    device_share_basis: ShareBasis | None = None
    """Basis of `device_share`; None without one."""
    communication_share: float | None = None
    """Fraction of it in exposed collectives."""
    input_share: float | None = None
    """Fraction of it in the DataLoader's `__next__`."""
    guessed_overhead: float | None = None
    """Estimated fraction of host time in the trace that is profiler overhead, where no measurement exists."""
    host_scale: float | None = None
    """Fraction of the host's own time that remains without the profiler, by calibration; None without a measurement."""
    outlook: Outlook | None = None
    """The step's limit without its syncs, or why that gains nothing; None without a replay."""

    @property
    def recorded_device_share(self) -> float:
        """Return the fraction of the recorded step in which the busiest device is busy; 0.0 for a step without time."""
        return min(1.0, self.device_busy_us / self.observed_us) if self.observed_us else 0.0


NOT_MEASURED = StepSummary(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, Bound.UNKNOWN, "")
"""A step without any measurement."""


class Lack(msgspec.Struct, frozen=True):
    """One piece of missing data: a sentence, and what can't be determined without it."""

    sentence: str
    verdict: bool = False
    """Whether the step's bound and the gains of removing syncs can't be determined."""
    waits: bool = False
    """Whether waits and idle time can't be measured."""

    def full_sentence(self) -> str:
        """Return the sentence, and what is withheld."""
        held = [name for name, withheld in (("waits", self.waits), ("verdict and gains", self.verdict)) if withheld]
        return f"{self.sentence} Withheld: {', '.join(held)}." if held else self.sentence


class Integrity(msgspec.Struct, frozen=True):
    """Everything that one trace is missing."""

    lacks: tuple[Lack, ...] = ()

    @property
    def verdict(self) -> bool:
        """Return whether the step's bound can be determined."""
        return not any(lack.verdict for lack in self.lacks)

    @property
    def waits(self) -> bool:
        """Return whether waits can be measured."""
        return not any(lack.waits for lack in self.lacks)

    def sentences(self) -> tuple[str, ...]:
        """Return a sentence for each piece of missing data, with what is withheld."""
        return tuple(lack.full_sentence() for lack in self.lacks)

    def reason(self) -> str:
        """Return why there is no verdict; empty where there is one."""
        return " ".join(lack.full_sentence() for lack in self.lacks if lack.verdict)


SOUND = Integrity()
"""Nothing is missing."""
