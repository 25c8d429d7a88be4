"""Habits: costs of a step besides syncs (input, kernels, launches, streams), and errors in its timing."""

from __future__ import annotations

import enum
from typing import NamedTuple

import msgspec

from syncscan.model.finding import Confidence, Phase, Severity, Source
from syncscan.model.interval import ThreadInterval


class Area(str, enum.Enum):
    """The part of a step that a habit belongs to."""

    HOST = "host"
    INPUT = "input"
    DEVICE = "device"
    STREAMS = "streams"


class Basis(str, enum.Enum):
    """Basis of a habit's gain: a replay of the step, samples of a host-bound step, or an upper bound."""

    REPLAY = "replay"
    SAMPLES = "samples"
    UPPER_BOUND = "upper bound"


class Paced(NamedTuple):
    """A part of a host thread's time that would take another time: `factor` times as long; ns on the trace's clock."""

    track: int
    begin: int
    end: int
    factor: float


class Change(msgspec.Struct, frozen=True):
    """The step without a habit, as an edit that a replay can apply; times in ns on the trace's clock.

    `host`: intervals of host threads to remove. `paced`: disjoint intervals of host threads that take another time.
    `work`: (row of device work, fraction of its length that stays). `calls`: rows of calls whose waits go too.
    `unstretched`: the profiler didn't lengthen `host`, even if it lengthened the rest of the host's time.
    """

    host: tuple[ThreadInterval, ...] = ()
    work: tuple[tuple[int, float], ...] = ()
    calls: tuple[int, ...] = ()
    unstretched: bool = False
    paced: tuple[Paced, ...] = ()


class SampledTime(msgspec.Struct, frozen=True):
    """A step's time in a habit that only samples show, and what they tell of its place."""

    activity: str
    """The habit in words that follow "the thread": `tokenizes texts`."""
    by_phase: tuple[tuple[Phase, float], ...]
    """Likely time of the step's thread by the phase of its samples, µs per step, largest first."""
    in_ops: bool = False
    """Whether ops may take that time, too, as those that touch memory first."""
    line: str = ""
    """The program's line that leads to most of it, as `train.py:12`; empty where none does."""


class HabitGain(msgspec.Struct, frozen=True):
    """How much shorter a step would be without a habit, µs, and the basis of that number."""

    recoverable_us: float
    range_us: tuple[float, float]
    basis: Basis

    def severity(self, step_us: float) -> Severity:
        """Return the severity by share of the step: high from 5 %, medium from 1 %; upper bounds are never high."""
        share = self.recoverable_us / step_us if step_us else 0.0
        severity = Severity.of_share(share)
        bound = self.basis is Basis.UPPER_BOUND
        return Severity.MEDIUM if bound and severity is Severity.HIGH else severity


class Advice(msgspec.Struct, frozen=True):
    """Texts of a habit's rule, the same for every trace."""

    rule: str
    area: Area
    title: str
    why: str
    fix: str
    when_fine: str
    do: str
    """The fix in one imperative line."""


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """Something between launches of one step that prevents one CUDA graph from holding those before and after it."""

    what: str
    source: Source | None = None
    """The program's line, if known."""
    finding: str = ""
    """Id of the sync, if it is one."""
    per_step: float
    us: float
    """Pause of launches, µs per step as recorded."""


class Habit(msgspec.Struct, frozen=True):
    """A habit of a program, with the numeric evidence. Times are means per step in µs.

    `cost_us` is measured: the time that the habit takes, which its gain can't exceed; None where it distorts a
    measurement instead of taking time. `changes` are possible effects of removing it: the likely one first, then the
    largest and the smallest usual one.
    """

    id: str
    advice: Advice
    confidence: Confidence
    scope: tuple[str, ...]
    op: str
    per_step: float
    evidence: tuple[str, ...]
    cost_us: float | None
    changes: tuple[Change, ...] = ()
    gain: HabitGain | None = None
    severity: Severity = Severity.LOW
    splits: tuple[Split, ...] = ()
    """For launches: what prevents one graph for the whole step, most frequent first."""
    sampled: SampledTime | None = None
    """For habits that only samples show: their time by phase; None where the trace shows the place."""

    @property
    def rule(self) -> str:
        """Id of its rule."""
        return self.advice.rule

    @property
    def recoverable_us(self) -> float | None:
        """How much shorter the step would be; None where the gain is unknown."""
        return self.gain.recoverable_us if self.gain else None

    @property
    def recoverable_range_us(self) -> tuple[float, float] | None:
        return self.gain.range_us if self.gain else None

    @property
    def basis(self) -> Basis | None:
        """Basis of the gain."""
        return self.gain.basis if self.gain else None
