"""Habits: costs of a step besides syncs (input, kernels, launches, streams), and errors in its timing."""

from __future__ import annotations

import enum
from typing import Annotated, NamedTuple

import msgspec
from msgspec.structs import replace

from syncscan.model.finding import Confidence, Phase, Severity, Source
from syncscan.model.interval import ThreadInterval
from syncscan.model.json_text import Range, about


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
    line: str = ""
    """The program's line that leads to most of it, as `train.py:12`; empty where none does."""


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


class HabitFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A cause of a slow step that isn't a sync."""

    id: str
    rule: str
    area: Area
    severity: Severity
    confidence: Confidence
    scope: tuple[str, ...]
    op: str
    per_step: float
    evidence: Annotated[tuple[str, ...], about("numeric evidence")]
    splits: Annotated[tuple[Split, ...], about("what separates the graphs")]
    cost_us: Annotated[float | None, about("measured")]
    recoverable_us: float | None
    recoverable_range_us: Range | None
    basis: Annotated[Basis | None, about("basis of the gain")]
    title: str
    why: str
    fix: str
    when_fine: str


class Habit(HabitFacts, frozen=True, kw_only=True):
    """A habit of a program; times are means per step in µs.

    JSON writes all fields above. `cost_us` is the time that the habit takes, which its gain can't exceed; None where it
    distorts a measurement instead of taking time. The gain is None where it is unknown.
    """

    severity: Severity = Severity.LOW
    splits: tuple[Split, ...] = ()
    recoverable_us: float | None = None
    recoverable_range_us: tuple[float, float] | None = None
    basis: Basis | None = None
    do: str
    """The fix in one imperative line."""
    changes: tuple[Change, ...] = ()
    """Possible effects of removing it: the likely one first, then the largest and the smallest usual one."""
    sampled: SampledTime | None = None
    """For habits that only samples show: their time by phase; None where the trace shows the place."""

    def gaining(self, us: float, range_us: tuple[float, float], basis: Basis, step_us: float) -> Habit:
        """Return it with this gain, and the severity of its share of the step: upper bounds are never high."""
        severity = Severity.of_share(us / step_us if step_us else 0.0)
        if basis is Basis.UPPER_BOUND and severity is Severity.HIGH:
            severity = Severity.MEDIUM
        return replace(self, recoverable_us=us, recoverable_range_us=range_us, basis=basis, severity=severity)

    def gaining_at_most(self, us: float, step_us: float) -> Habit:
        """Return it with an upper bound of its gain."""
        return self.gaining(us, (0.0, us), Basis.UPPER_BOUND, step_us)
