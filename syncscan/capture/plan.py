"""Plan the phase of each step of a capture."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, replace

from syncscan.errors import UsageError

LONGEST_SAMPLE = 600.0
"""Longest sampling time in seconds; samples are kept in memory."""


class StepPurpose(enum.Enum):
    """Purpose of a step."""

    SETTLE = "skipped, to settle"
    CALIBRATE = "timed without the profiler"
    LOOK = "skipped, to find their period"
    WAIT = "skipped, before each cycle"
    WARMUP = "profiler warm-up, discarded"
    ACTIVE = "recorded"
    SAMPLE = "sampled without the profiler, after the cycles"
    BETWEEN = "skipped, while phases between them are recorded"


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a capture, in order.

    `settle` and `calibrate` steps run first and once, without the profiler; after them each of `repeat` cycles has
    `wait` steps without it, `warmup` steps under it that are thrown away, and `active` steps that are recorded. After
    the last cycle as many steps as `sample` seconds hold are sampled, without the profiler; none where that is 0.

    `auto` says that where steps differ in turn a whole period of them is recorded, and after the last sampled step each
    phase between steps that takes more than a few percent of the run.
    """

    wait: int = 1
    warmup: int = 4
    active: int = 3
    repeat: int = 1
    calibrate: int = 10
    settle: int = 3
    sample: float = 0.0
    auto: bool = False

    def __post_init__(self) -> None:
        """Reject a plan that makes no sense.

        Raises:
            UsageError: a negative number of steps, or no active step or cycle, or a time that can't be waited for.
        """
        for name in ("wait", "warmup", "calibrate", "settle"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} is {getattr(self, name)}, but a number of steps can't be negative.")
        for name in ("active", "repeat"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} is {getattr(self, name)}, but at least 1 is needed to record anything.")
        if not (0 <= self.sample <= LONGEST_SAMPLE and math.isfinite(self.sample)):
            raise UsageError(f"sample is {self.sample:g} seconds, and must lie between 0 and {LONGEST_SAMPLE:g}.")

    @property
    def unprofiled(self) -> int:
        """Return the steps before the first cycle: none without calibration."""
        return self.settle + self.calibrate if self.calibrate else 0

    @property
    def cycle(self) -> int:
        """Return the steps of one cycle."""
        return self.wait + self.warmup + self.active

    @property
    def steps(self) -> int:
        """Return the steps from the first to the last recorded one."""
        return self.unprofiled + self.repeat * self.cycle

    def of_period(self, period: int) -> Plan:
        """Return the plan whose cycles hold whole periods.

        Args:
            period: after how many steps they repeat.
        """
        return replace(self, active=period * -(-self.active // period))

    def phases(self) -> list[tuple[StepPurpose, int]]:
        """Return each phase with its number of steps, in order, without empty ones."""
        first = [(StepPurpose.SETTLE, self.settle), (StepPurpose.CALIBRATE, self.calibrate)] if self.calibrate else []
        cycle = [(StepPurpose.WAIT, self.wait), (StepPurpose.WARMUP, self.warmup), (StepPurpose.ACTIVE, self.active)]
        last = [(StepPurpose.SAMPLE, 1)] if self.sample else []  # how many it takes shows when they run
        last += [(StepPurpose.BETWEEN, 1)] if self.sample and self.auto else []
        return [(phase, steps) for phase, steps in first + self.repeat * cycle + last if steps]
