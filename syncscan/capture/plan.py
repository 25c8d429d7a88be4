"""Plan when captures begin, and the purpose of each of their steps."""

from __future__ import annotations

import enum
import math
import signal
from dataclasses import dataclass, field, replace

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


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a capture, in order.

    `settle` and `calibrate` steps run first and once, without the profiler; after them each of `repeat` cycles has
    `wait` steps without it, `warmup` steps under it that are thrown away, and `active` steps that are recorded. After
    the last cycle as many steps as `sample` seconds hold are sampled, without the profiler; none where that is 0.

    `auto` says that where steps differ in turn a whole period of them is recorded; `stacks` and `shapes`, that Python
    frames and the shapes of inputs are, too.
    """

    wait: int = 1
    warmup: int = 4
    active: int = 3
    repeat: int = 1
    calibrate: int = 10
    settle: int = 3
    sample: float = 0.0
    auto: bool = False
    stacks: bool = False
    shapes: bool = False

    def __post_init__(self) -> None:
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
        return self.wait + self.warmup + self.active

    @property
    def steps(self) -> int:
        """Return the steps from the first to the last recorded one."""
        return self.unprofiled + self.repeat * self.cycle

    def of_period(self, period: int) -> Plan:
        return replace(self, active=period * -(-self.active // period))

    def phases(self) -> list[tuple[StepPurpose, int]]:
        """Return each phase with its number of steps, in order, without empty ones."""
        first = [(StepPurpose.SETTLE, self.settle), (StepPurpose.CALIBRATE, self.calibrate)] if self.calibrate else []
        cycle = [(StepPurpose.WAIT, self.wait), (StepPurpose.WARMUP, self.warmup), (StepPurpose.ACTIVE, self.active)]
        last = [(StepPurpose.SAMPLE, 1)] if self.sample else []  # how many it takes shows when they run
        return [(phase, steps) for phase, steps in first + self.repeat * cycle + last if steps]


@dataclass(slots=True)
class Demand:
    """When captures of a running loop begin; without options, once and at once.

    The first begins after `start_at` steps, another one `every` so many steps after the last began, or whenever the
    signal `on_signal` has come (`USR2`, `SIGUSR2` or its number); with `on_trigger`, only when `ask` was called.
    """

    start_at: int | None = None
    every: int | None = None
    on_signal: str | int | None = None
    on_trigger: bool = False
    requested: int = field(default=0, init=False)
    """Captures that were requested and haven't begun."""
    _next: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.start_at is not None and self.start_at < 0:
            raise UsageError(f"start_at is {self.start_at}, but a number of steps can't be negative.")
        if self.every is not None and self.every < 1:
            raise UsageError(f"every is {self.every}, but at least 1 step must lie between two captures.")
        if self.on_signal is not None:
            self.on_signal = signal_number(self.on_signal)
        scheduled = self.start_at is not None or self.every is not None
        self._next = (self.start_at or 0) if scheduled or not self.standing else None

    @property
    def standing(self) -> bool:
        """Return whether captures can become due for as long as the loop runs."""
        return self.every is not None or self.on_signal is not None or self.on_trigger

    @property
    def pending(self) -> bool:
        """Return whether a capture is still to come, or possible."""
        return self.standing or self.requested > 0 or self._next is not None

    def ask(self) -> None:
        """Request one more capture; safe in a signal handler and on any thread, as it only counts."""
        self.requested += 1

    def due(self, steps: int) -> bool:
        """Return whether a capture begins now, after this many steps, and consume its request."""
        if self._next is not None and steps >= self._next:
            self._next = steps + self.every if self.every is not None else None
            return True
        if self.requested:
            self.requested -= 1
            return True
        return False


def signal_number(name: str | int) -> int:
    """Return the number of a signal given by name, with or without `SIG`, or by number."""
    text = str(name).upper()
    try:
        number = signal.Signals(int(text)) if text.isdigit() else signal.Signals[f"SIG{text.removeprefix('SIG')}"]
    except (KeyError, ValueError):
        raise UsageError(f"This system has no signal {name}.", "Use USR1 or USR2.") from None
    if number.name in ("SIGKILL", "SIGSTOP", "SIGTERM", "SIGINT", "SIGSEGV", "SIGCHLD", "SIGHUP"):
        raise UsageError(f"{number.name} is reserved and can't start a capture.", "Use USR1 or USR2.")
    return int(number)
