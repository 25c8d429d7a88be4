"""A program's whole run, as far as it was watched: its steps, and the phases between and within them."""

from __future__ import annotations

import enum

import msgspec


class PhaseKind(enum.Enum):
    """Purpose of a phase, judged by function names."""

    ROLLOUT = "rollout"
    GENERATION = "generation"
    VALIDATION = "validation"
    CHECKPOINT = "checkpoint"
    LOGGING = "logging"
    LOADER = "starting the loader"
    OTHER = "other work"


class RunPhase(msgspec.Struct, frozen=True, kw_only=True):
    """Work of the program between or within its steps, but not in each of them."""

    kind: str
    """A value of `PhaseKind`, or a newer version's name."""
    name: str
    file: str
    function: str
    first: int
    last: int
    """First and last line of the loop or statement within the function."""
    share: float | None
    """Fraction of the run's time, 0 to 1; None if nothing was timed."""
    every: float | None
    """Mean number of steps between occurrences; None if it occurred once."""
    seen_at: int | None = None
    """A step before which or in which it ran, late enough to be recorded; None if no step is known."""
    rounds: float | None = None
    """Mean rounds of its loop per occurrence; None if they weren't counted, or it is no loop."""


class ProgramRun(msgspec.Struct, frozen=True, kw_only=True):
    """The run from a capture's first step to its last, or a dry run's, in which nothing is timed; times in µs."""

    steps: int
    """Number of steps seen."""
    watched_us: float | None
    """Their total time, including steps that the capture disturbed; None if nothing was timed."""
    counted: int
    """Number of undisturbed steps that the mean and the shares are based on."""
    mean_us: float | None
    """Mean time of those, including the phases between them; None if nothing was timed."""
    steps_share: float | None
    """The steps' fraction of the run's time, 0 to 1; None without samples."""
    phases: tuple[RunPhase, ...]
    """Phases that take the rest, longest first."""
