"""Steps that run without a profiler go in, the time of each comes out, and how sure one can be of their median.

The device isn't drained between them: that would part what host and device do at the same time across steps, and
throughput is what counts. Instead an event is recorded at each step's end, and nobody waits for it until all are over;
the distance of two such events is the period of one step. That holds where the device is the limit (its own clock
says when it was done with each step, though the host had long gone on), where the host is (the last kernel ends a
constant while after its launch), and where a sync makes them equal. The host's clock would do in the last two alone.
"""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from syncscan.capture import device

UNSEEN = 0.1
"""If the events miss this part of the time until the device was drained, it works on streams that they don't see."""
NOISY = 0.05
"""Projected gains scale with the step's time; from this uncertainty on it is the largest of their errors, which are
5.1 % at the 90th percentile where the time is sure (H200, torch 2.11: docs/how-well.md)."""
MOST = 500
QUARTERS = 4
STUDENT = 3.182
"""Student's t of four batches, three degrees of freedom, at 95 %."""


@dataclass(frozen=True, slots=True)
class StepTimes:
    """What steps took without a profiler, in µs.

    `each` is empty where single steps couldn't be told apart, `clock` says who measured: "device" or "host".
    """

    mean: float
    each: tuple[float, ...]
    clock: str

    @property
    def typical(self) -> float:
        """The median of single steps, which a pause of the system or of Python's garbage collector doesn't move."""
        return statistics.median(self.each) if self.each else self.mean

    @property
    def quartiles(self) -> tuple[float, float] | None:
        """Between these lies the middle half of the steps; None where there are fewer than four."""
        if len(self.each) < 4:
            return None
        first, _, third = statistics.quantiles(self.each, n=4, method="inclusive")
        return first, third

    @property
    def uncertainty(self) -> float | None:
        """Within which part of it the median lies, at 95 %; None where there is no spread to tell.

        The larger of two: what the steps would say were each independent of the one before, and what their quarters
        say. On a shared host they are not: its speed wanders by a tenth over ten to twenty steps, and of forty steps
        the first alone claims ±3.6 %, which the next forty kept to in 38 % of the cases, with the quarters in 81 %
        (208 pairs, H200, torch 2.11). What wanders more slowly than the steps last can't be seen in them.
        """
        if self.quartiles is None or self.typical <= 0:
            return None
        return max(self._of_steps(*self.quartiles), self._of_quarters()) / self.typical

    def _of_steps(self, first: float, third: float) -> float:
        """Twice the median's standard error, in µs, of as many independent steps.

        Of a normal distribution the median's standard error is 1.25 times the mean's, and the quartiles are 1.35
        standard deviations apart.
        """
        return 2 * 1.2533 * (third - first) / 1.349 / math.sqrt(len(self.each))

    def _of_quarters(self) -> float:
        """The same from the medians of four batches, one after the other (batch means: Law & Kelton, Simulation)."""
        steps = len(self.each)
        if steps < 2 * QUARTERS:
            return 0.0
        edges = [steps * k // QUARTERS for k in range(QUARTERS + 1)]
        medians = [statistics.median(self.each[a:b]) for a, b in itertools.pairwise(edges)]
        return STUDENT * statistics.stdev(medians) / math.sqrt(QUARTERS)

    def advice(self) -> str | None:
        """What to tell the user where the time is too uncertain to scale gains by; None where it is not.

        The standard error falls with the root of the number of steps.
        """
        if self.uncertainty is None or self.uncertainty <= NOISY:
            return None
        steps = min(MOST, 10 * math.ceil(len(self.each) * (self.uncertainty / NOISY) ** 2 / 10))
        return (
            f"A step takes {self.typical / 1e3:.3g} ms without the profiler, ±{self.uncertainty:.0%} after"
            f" {len(self.each)} steps: repeat with --calibrate {steps}."
        )


class Calibration:
    """Takes the times of the steps from its making, or its first `mark`, until `end`.

    Args:
        steps: how many there will be; where there are more, only their mean is known.
        begin: the first step begins now, and not at the first `mark`.
    """

    def __init__(self, steps: int, *, begin: bool = True) -> None:
        self._events = _events(steps + 1)
        device.drain()
        self._host: list[int] = []
        if begin:
            self.mark()

    def mark(self) -> None:
        """Say that a step has ended; costs a few µs of the host."""
        if len(self._host) < len(self._events):
            self._events[len(self._host)].record()
        self._host.append(time.perf_counter_ns())

    def end(self) -> StepTimes:
        """Wait for the device, and tell the steps' times."""
        device.drain()
        steps = len(self._host) - 1
        total = (time.perf_counter_ns() - self._host[0]) / 1e3
        if not device.used():
            return StepTimes(total / steps, tuple((b - a) / 1e3 for a, b in itertools.pairwise(self._host)), "host")
        each = _distances(self._events[: steps + 1])
        if sum(each) < (1 - UNSEEN) * total:
            return StepTimes(total / steps, (), "host")
        return StepTimes(total / steps, each, "device")


def _events(count: int) -> list[Any]:
    """Events that take a time, each recorded once, for a first recording makes them; none where there is no device."""
    if not device.used():
        return []
    try:
        events = [device.backend().Event(enable_timing=True) for _ in range(count)]
        for event in events:
            event.record()
    except (TypeError, RuntimeError):  # older torches can't time on an XPU
        return []
    return events


def _distances(events: Sequence[Any]) -> tuple[float, ...]:
    """From each event to the next in µs; empty where they lie on different devices."""
    try:
        return tuple(float(a.elapsed_time(b)) * 1e3 for a, b in itertools.pairwise(events))
    except (RuntimeError, ValueError):
        return ()
