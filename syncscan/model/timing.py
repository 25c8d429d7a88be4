"""How long a call takes: what `capture.timing` measures and `report.timing` shows; all times in µs."""

from __future__ import annotations

import enum
import statistics

import msgspec


class Clock(str, enum.Enum):
    """Whose clock took the time."""

    DEVICE = "device"
    HOST = "host"


class OneOff(msgspec.Struct, frozen=True):
    """A cost that is paid once and belongs to no repetition: initialisation, the copy to the device, warm-up."""

    name: str
    us: float
    note: str = ""


class Naive(msgspec.Struct, frozen=True):
    """What a usual mistake would have said of the same call, and why that is wrong."""

    mistake: str
    us: float
    why: str


class BatchTime(msgspec.Struct, frozen=True):
    """One batch size that was tried: the time of a call in µs, or None where it ran out of memory."""

    batch: int
    us: float | None

    @property
    def per_second(self) -> float | None:
        """Samples a second; None where it ran out of memory."""
        return self.batch / self.us * 1e6 if self.us else None


class Throughput(msgspec.Struct, frozen=True):
    """The batch sizes tried, in ascending order, and what came of them.

    `best` is the largest of those with the most samples a second (within 1 %), `enough` the smallest within 5 % of
    that, `largest` the largest that ran; `ended` says why the search went no further. `fits_all` is true when no size
    ran out of memory.
    """

    tried: tuple[BatchTime, ...]
    best: BatchTime
    enough: BatchTime
    largest: int
    fits_all: bool
    ended: str


class Timing(msgspec.Struct, frozen=True):
    """The time of one call, measured over many.

    `samples_us` are the times of a call, each a mean over `block` calls in a row: more than one where a single call is
    too short beside the cost of reading the clock.
    """

    name: str
    clock: Clock
    device: str
    samples_us: tuple[float, ...]
    block: int
    alone_us: float
    """The median of a call that finds the device idle and is waited for, by the host's clock: a lone request's time."""
    one_offs: tuple[OneOff, ...]
    stable: bool
    """Whether the warm-up ended because the time had settled, not because it had lasted too long."""
    naive: tuple[Naive, ...] = ()
    throughput: Throughput | None = None
    notes: tuple[str, ...] = ()

    @property
    def median_us(self) -> float:
        """The time of a call: the median of the samples."""
        return statistics.median(self.samples_us)

    @property
    def mean_us(self) -> float:
        """The mean of the samples; above the median where a few were disturbed."""
        return statistics.fmean(self.samples_us)

    @property
    def std_us(self) -> float:
        """The standard deviation of the samples; 0 for a single one."""
        return statistics.stdev(self.samples_us) if len(self.samples_us) > 1 else 0.0

    @property
    def spread(self) -> float:
        """The interquartile range as a part of the median: robust against a few disturbed samples."""
        return (self.percentile(75) - self.percentile(25)) / self.median_us if self.median_us else 0.0

    def percentile(self, q: float) -> float:
        """The q-th percentile (0 to 100) of the samples, interpolated, in µs."""
        ordered = sorted(self.samples_us)
        at = (len(ordered) - 1) * q / 100
        low = int(at)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (at - low)
