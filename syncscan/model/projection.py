"""What a replay predicts: the step without chosen sync points."""

from __future__ import annotations

from dataclasses import dataclass

from syncscan.model.analysis import Bound


@dataclass(frozen=True, slots=True)
class Projection:
    """The predicted step without the findings in `removed`; all times in µs a step.

    `baseline_us` is the replay with nothing removed, `observed_us` what the trace (or `--step-ms`) says of the step.
    """

    removed: tuple[str, ...]
    observed_us: float
    baseline_us: float
    predicted_us: float
    range_us: tuple[float, float]
    bound_after: Bound
    host_limit_us: float
    device_limit_us: float
    notes: tuple[str, ...] = ()

    @property
    def saving_us(self) -> float:
        """How much shorter the step is predicted to be, in µs."""
        return self.baseline_us - self.predicted_us

    @property
    def speedup(self) -> float:
        """`baseline_us / predicted_us`."""
        return self.baseline_us / self.predicted_us if self.predicted_us else 1.0
