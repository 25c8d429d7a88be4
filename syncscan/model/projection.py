"""What a replay predicts: the step without chosen sync points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from syncscan.model.schedule import Schedule
from syncscan.model.step import Bound


class Projection(msgspec.Struct, frozen=True):
    """The predicted step without the findings in `removed`; all times in µs a step.

    `baseline_us` is the replay with nothing removed, `observed_us` what the trace (or `--step-ms`) says of the step.
    `device_limit_us` is the device's own work: the profiler makes it no longer, so where a guess of the profiler's part
    puts the other times in proportion to the profiled step, it stays what the trace has.
    """

    removed: tuple[str, ...]
    observed_us: float
    baseline_us: float
    predicted_us: float
    range_us: tuple[float, float]
    bound_after: Bound
    host_limit_us: float
    device_limit_us: float
    device_share: float = 1.0
    """The part of the predicted step in which the device works."""
    notes: tuple[str, ...] = ()
    profiled_us: float = 0.0
    """The step's time in the trace, under the profiler."""
    calibrated: bool = False
    """True if the unprofiled step's time is known; else all times are in proportion to the profiled step."""
    host_scale: float = 1.0
    """The part of the host's own time in the trace that isn't the profiler's."""
    launches: str = "eager"
    """How the step launches then: `eager`, `compile`, `reduce-overhead` or `graph`."""

    @property
    def saving_us(self) -> float:
        """How much shorter the step is predicted to be, in µs."""
        return self.baseline_us - self.predicted_us

    @property
    def speedup(self) -> float:
        """`baseline_us / predicted_us`."""
        return self.baseline_us / self.predicted_us if self.predicted_us else 1.0


class Group(msgspec.Struct, frozen=True):
    """Findings worth removing together, in the order in which to do it: what they save on top of the groups before.

    `alone_us` is the most that any one of them saves alone; all times in µs a step.
    """

    ids: tuple[str, ...]
    saving_us: float
    alone_us: float
    after_us: float
    """The step without this group and those before it."""


class Overlap(msgspec.Struct, frozen=True):
    """How much of the device's time two of its streams really overlapped; µs a step, as recorded."""

    device: int
    streams: tuple[int, int]
    work_us: tuple[float, float]
    """Each stream's own work."""
    shared_us: float
    """Time in which both worked."""


class Pipeline(msgspec.Struct, frozen=True):
    """An upper bound on what running `scope` on a stream of its own, a step ahead, would save; µs a step.

    `beside` is the scope that it would run beside, empty for all the rest of the step. `scope_us` and `beside_us` are
    the device's work in them.
    """

    scope: str
    beside: str
    scope_us: float
    beside_us: float
    baseline_us: float
    at_best_us: float

    @property
    def saving_us(self) -> float:
        """The most that it can save, in µs."""
        return self.baseline_us - self.at_best_us


class Projects(Protocol):
    """What an analysis asks of the stage that replays its step; the arguments are those of `Analysis`."""

    @property
    def replayable(self) -> bool:
        """Whether there is anything to replay."""
        ...

    def whatif(
        self, selectors: Sequence[str], *, step_ms: float | None, keep_timing: bool, launches: str | None
    ) -> Projection:
        """The step without the findings that these selectors name, launched so."""
        ...

    def pipeline(self, scope: str, beside: str, *, step_ms: float | None) -> Pipeline:
        """An upper bound on what running a scope a step ahead would save."""
        ...

    def schedule(self, selectors: Sequence[str], *, at: int | None, step_ms: float | None) -> Schedule | None:
        """One step without these findings, launch by launch."""
        ...
