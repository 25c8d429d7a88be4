"""Duration of a call: `capture.timing` measures it and `report.timing` shows it; all times in µs."""

from __future__ import annotations

import enum
import statistics

import msgspec


class Clock(str, enum.Enum):
    """The clock that took the time."""

    DEVICE = "device"
    HOST = "host"


class OneOff(msgspec.Struct, frozen=True):
    """A one-time cost that belongs to no repetition: initialization, the copy to the device, warm-up."""

    name: str
    us: float
    note: str = ""


class Naive(msgspec.Struct, frozen=True):
    """The time that a common mistake would have measured for the same call, and why it is wrong."""

    mistake: str
    us: float
    why: str


class BatchTime(msgspec.Struct, frozen=True):
    """A batch size that was tried: the time of a call in µs, or None where it ran out of memory."""

    batch: int
    us: float | None

    @property
    def per_second(self) -> float | None:
        """Samples per second; None where it ran out of memory."""
        return self.batch / self.us * 1e6 if self.us else None


class Throughput(msgspec.Struct, frozen=True):
    """The batch sizes tried, ascending, and the result.

    `best` is the largest of those with the most samples per second (within 1 %), `enough` the smallest within 5 % of
    that, `largest` the largest that ran; `ended` says why the search stopped. `fits_all` is true when no size ran out
    of memory.
    """

    tried: tuple[BatchTime, ...]
    best: BatchTime
    enough: BatchTime
    largest: int
    fits_all: bool
    ended: str


class Timing(msgspec.Struct, frozen=True):
    """The time of one call, measured over many.

    `samples_us` are times of a call, each a mean over `block` consecutive calls: more than one where a single call is
    too short compared with the cost of reading the clock.
    """

    name: str
    clock: Clock
    device: str
    samples_us: tuple[float, ...]
    block: int
    alone_us: float
    """Median time of a call on an idle device that the host waits for, by the host's clock: a single request's latency.
    """
    one_offs: tuple[OneOff, ...]
    stable: bool
    """Whether the warm-up ended because the time had stabilized, not because it took too long."""
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
        """The interquartile range as a fraction of the median: robust against a few disturbed samples."""
        return (self.percentile(75) - self.percentile(25)) / self.median_us if self.median_us else 0.0

    def percentile(self, q: float) -> float:
        """Return the q-th percentile (0 to 100) of the samples, interpolated, in µs."""
        ordered = sorted(self.samples_us)
        at = (len(ordered) - 1) * q / 100
        low = int(at)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (at - low)
