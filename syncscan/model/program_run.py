"""A program's whole run, as far as it was watched: its steps, and the phases between and within them."""

from __future__ import annotations

import enum

import msgspec


class PhaseKind(enum.Enum):
    """What a phase is for, as far as functions' names tell it."""

    ROLLOUT = "rollout"
    GENERATION = "generation"
    VALIDATION = "validation"
    CHECKPOINT = "checkpoint"
    LOGGING = "logging"
    LOADER = "starting the loader"
    OTHER = "other work"


class PhaseLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the program that a phase was met in."""

    file: str
    line: int
    function: str
    share: float | None
    """Of the run's time; None where nothing was timed."""


class RunPhase(msgspec.Struct, frozen=True, kw_only=True):
    """What the program does between or within its steps, but not in each of them."""

    kind: str
    """A value of `PhaseKind`, or what a later version calls it."""
    name: str
    file: str
    function: str
    first: int
    last: int
    """The lines of the function that it is in: of the loop that it is, or the statement's."""
    share: float | None
    """Of the run's time, 0 to 1; None where nothing was timed."""
    every: float | None
    """After how many steps it comes again, in the mean; None where it came once."""
    lines: tuple[PhaseLine, ...]
    """The costliest."""
    trace: str = ""
    """The name of the trace that holds a part of it; empty without one."""
    missing: str = ""
    """Why there is none, where one was wanted."""
    rounds: float | None = None
    """How many rounds of its loop it is each time, in the mean, where they were counted; None where it is no loop."""


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the run, in µs from its first step's begin."""

    begin_us: float
    end_us: float
    phase: int | None
    """Its place in `ProgramRun.phases`; None for the steps themselves."""


class ProgramRun(msgspec.Struct, frozen=True, kw_only=True):
    """The run from a capture's first step to its last, or a dry run's, in which nothing was timed. Times in µs."""

    steps: int
    """All that were seen."""
    watched_us: float | None
    """How long they took in all, those that the capture disturbed too; None where nothing was timed."""
    counted: int
    """The program's own, undisturbed steps that the mean and the shares are of."""
    mean_us: float | None
    """What one of those took in the mean, with the phases between them; None where nothing was timed."""
    median_us: float | None
    period: int
    """After how many steps their times repeat; 1 where they are alike."""
    period_us: tuple[float, ...]
    """Of each step of a period the median time; empty without a period."""
    steps_share: float | None
    """The steps' own part of the run's time, 0 to 1; None where nothing was sampled."""
    phases: tuple[RunPhase, ...]
    """What takes the rest, the longest first."""
    stretches: tuple[Stretch, ...]
    disturbed: tuple[Stretch, ...]
    """While the capture itself was at work."""
    recorded: tuple[Stretch, ...]
