"""Times of single steps without a profiler, and the uncertainty of their typical time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import msgspec

from syncscan.model.duration import duration

NOISY = 0.05
"""Uncertainty from which step time is the largest error of projected gains, which scale with it; otherwise their error
is 5.1 % at the 90th percentile (H200, torch 2.11: docs/how-well.md)."""
MOST = 500
RECORD_AGAIN = "repeat with --calibrate"
"""Words of the advice for an uncertain time."""
QUARTERS = 4
STUDENT = 3.182
"""Student's t for four batches, three degrees of freedom, at 95 %."""


class StepTimes(msgspec.Struct, frozen=True):
    """Step times without a profiler, in µs.

    `each` is empty where single steps couldn't be distinguished, `clock` is the measuring clock: "device" or "host".
    `period` is the number of steps after which times repeat, where steps aren't alike.
    """

    mean: float
    each: tuple[float, ...]
    clock: str
    period: int = 1

    @property
    def typical(self) -> float:
        """The median of single steps, which is robust against pauses of the system or the garbage collector.

        Where steps differ periodically: the mean over a period of the median at each position.
        """
        if not self.each:
            return self.mean
        medians = [_quantile(self.each[k :: self.period], 0.5) for k in range(min(self.period, len(self.each)))]
        return sum(medians) / len(medians)

    @property
    def quartiles(self) -> tuple[float, float] | None:
        """Quartiles of the step times; None with fewer than four."""
        if len(self.each) < 4:
            return None
        even = self._evened
        return _quantile(even, 0.25), _quantile(even, 0.75)

    @property
    def _evened(self) -> tuple[float, ...]:
        """Step times without their periodic differences."""
        if self.period <= 1:
            return self.each
        medians = [_quantile(self.each[k :: self.period], 0.5) for k in range(min(self.period, len(self.each)))]
        return tuple(us - medians[k % self.period] + self.typical for k, us in enumerate(self.each))

    @property
    def uncertainty(self) -> float | None:
        """Relative uncertainty of the median at 95 %; None without a spread.

        The larger of two estimates: one that treats steps as independent, and one from the medians of their quarters.
        On a shared host steps aren't independent: its speed wanders by a tenth over ten to twenty steps, and with forty
        steps the first estimate claims ±3.6 %, which the next forty kept to in 39 % of the cases, with the quarters in
        81 % (208 pairs, H200, torch 2.11: `benchmarks.wandering`). Neither sees slower drifts than the steps last.
        """
        if self.quartiles is None or self.typical <= 0:
            return None
        return max(self._of_steps(*self.quartiles), self._of_quarters()) / self.typical

    def _of_steps(self, first: float, third: float) -> float:
        """Return twice the median's standard error, in µs, for as many independent steps.

        For a normal distribution the median's standard error is 1.25 times the mean's, and the quartiles are 1.35
        standard deviations apart.
        """
        return 2 * 1.2533 * (third - first) / 1.349 / math.sqrt(len(self.each))

    def _of_quarters(self) -> float:
        """Return that error from the medians of four consecutive batches (batch means: Law & Kelton, Simulation)."""
        steps = len(self.each)
        if steps < 2 * QUARTERS:
            return 0.0
        edges = [steps * k // QUARTERS for k in range(QUARTERS + 1)]
        even = self._evened
        medians = [_quantile(even[a:b], 0.5) for a, b in itertools.pairwise(edges)]
        mean = sum(medians) / QUARTERS
        variance = sum((median - mean) ** 2 for median in medians) / (QUARTERS - 1)
        return STUDENT * math.sqrt(variance / QUARTERS)

    def advice(self) -> str | None:
        """Return advice for the user where the time is too uncertain to scale gains by; None where it is not.

        The standard error falls with the root of the number of steps.
        """
        if self.uncertainty is None or self.uncertainty <= NOISY:
            return None
        steps = min(MOST, 10 * math.ceil(len(self.each) * (self.uncertainty / NOISY) ** 2 / 10))
        return (
            f"A step takes {duration(self.typical)} without the profiler, ±{self.uncertainty:.0%} after"
            f" {len(self.each)} steps: {RECORD_AGAIN} {steps}."
        )


def _quantile(values: Sequence[float], part: float) -> float:
    """Return a quantile by interpolation between the nearest two values.

    It avoids `arrays.quantile`, as a capture does without numpy, and `statistics`, as an analysis does without random.
    """
    ordered, place = sorted(values), part * (len(values) - 1)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return low + (high - low) * (place % 1)
