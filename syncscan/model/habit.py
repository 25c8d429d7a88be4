"""Habits: what costs a step time without being a sync (input, kernels, launches, streams) or spoils its timing."""

from __future__ import annotations

import enum
from typing import NamedTuple

import msgspec

from syncscan.model.finding import Confidence, Phase, Severity, Source
from syncscan.model.interval import ThreadInterval


class Area(str, enum.Enum):
    """Which part of a step a habit belongs to."""

    TIMING = "timing"
    HOST = "host"
    INPUT = "input"
    DEVICE = "device"
    STREAMS = "streams"


class Basis(str, enum.Enum):
    """What a habit's gain rests on: a replay of the step, samples of one that its host bounds, or a time that it can't
    exceed.
    """

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
    """What a step would be without a habit, as an edit that a replay can make; times in ns on the trace's clock.

    `host`: intervals of host threads that would be gone. `paced`: such that would take another time, disjoint ones.
    `work`: (row of device work, part of its
    length that would stay). `ahead`: intervals of host threads
    whose device work would run on a stream of its own, where nothing waits for it. `calls`: rows of sync points' calls
    that would be gone, with their waits. `unstretched`: the profiler lengthened none of `host`, whatever it did to the
    rest of the host's time.
    """

    host: tuple[ThreadInterval, ...] = ()
    work: tuple[tuple[int, float], ...] = ()
    ahead: tuple[ThreadInterval, ...] = ()
    calls: tuple[int, ...] = ()
    unstretched: bool = False
    paced: tuple[Paced, ...] = ()


class HabitGain(msgspec.Struct, frozen=True):
    """How much shorter a step would be without a habit, in µs, and what that rests on."""

    recoverable_us: float
    range_us: tuple[float, float]
    basis: Basis

    def severity(self, step_us: float) -> Severity:
        """By the share of the step: high from 5 %, medium from 1 %; what is only an upper bound is never high."""
        share = self.recoverable_us / step_us if step_us else 0.0
        severity = Severity.of_share(share)
        bound = self.basis is Basis.UPPER_BOUND
        return Severity.MEDIUM if bound and severity is Severity.HIGH else severity


class Advice(msgspec.Struct, frozen=True):
    """The words of a habit's rule, the same for every trace."""

    rule: str
    area: Area
    title: str
    why: str
    fix: str
    when_fine: str


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """What stands between launches of one step, so that no CUDA graph holds both those before it and those behind."""

    what: str
    source: Source | None = None
    """The program's line, where it is known."""
    finding: str = ""
    """The id of the sync that it is; empty where it is none."""
    per_step: float
    us: float
    """How long launching pauses there, in µs a step as recorded."""


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """Launches of one phase that a graph can hold, with nothing in the way; the same place in each step."""

    phase: Phase
    """Forward, backward or optimizer; other where a step has no backward pass."""
    launches: float
    """Calls a step."""
    host_us: float
    """From the first to the end of the last, in µs a step on the scale of the undisturbed step."""
    ended_by: str
    """What stands behind it; empty where another phase of the same part follows, or the step ends."""
    changes: tuple[Change, ...]
    """The step without these launches, as of `Habit`."""
    gain: HabitGain | None = None


class Habit(msgspec.Struct, frozen=True):
    """One habit of a program, with the numbers that prove it. Times are means per step in µs.

    `cost_us` is measured: the time that the habit takes of a step, which its gain can't exceed; None where it spoils a
    measurement instead of taking time. `changes` are what removing it could mean: the likely one first, then the most
    and the least that is usual.
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
    segments: tuple[Segment, ...] = ()
    """Of launches: those that graphs can hold, the longest first. What each saves alone needn't add up to the gain."""
    splits: tuple[Split, ...] = ()
    """Of launches: what stands in the way of one graph for the whole step, the most frequent first."""

    @property
    def rule(self) -> str:
        """The id of the rule that found it."""
        return self.advice.rule
