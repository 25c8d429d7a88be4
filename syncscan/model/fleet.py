"""The analysis of a job of many ranks: who delays whom, what each finding costs the job, what is unknown.

Times are µs per step unless stated otherwise, on the job's clock: that of its first rank, with the others aligned to
it.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import msgspec

from syncscan.model.finding import Finding
from syncscan.model.rank import RankAnalysis

if TYPE_CHECKING:
    import pandas as pd


STRETCHED = 1.25
"""Slowdown by the profiler from which the hosts' lateness in a trace says little: each host lags by its own slowdown
(H200: two equal ranks were up to 9 ms apart in steps of 35 ms that took 18 without the profiler)."""


class RankFrom(str, enum.Enum):
    """Where the rank of a trace is known from."""

    TRACE = "trace"
    """The trace's own `distributedInfo`."""
    NAME = "file name"
    ORDER = "order"


class LateCause(str, enum.Enum):
    """Why a rank arrives at a collective later than the others."""

    SYNC = "sync"
    """Its device was idle after a sync."""
    KERNELS = "kernels"
    """Its device worked longer."""
    INPUT = "input"
    """Its thread spent longer in the DataLoader."""
    HOST = "host"
    """Its device was idle because its host was late for another reason."""
    BEFORE = "before"
    """It was late to the first collective of the recording, because of earlier events."""


class JobRank(msgspec.Struct, frozen=True):
    """One rank of a job."""

    number: int
    of: RankAnalysis
    numbered_from: RankFrom
    clock_ns: int
    """Offset from the rank's epoch time to the job's."""
    holds_us: float
    """How much later than the others it arrived at the collectives for which it was last; mean per step."""
    waits_us: float
    """How long it waited for others in collectives; mean per step."""


class Lateness(msgspec.Struct, frozen=True):
    """The rank that delayed the others in one step."""

    step: int
    """Number of the step."""
    rank: int
    late_us: float
    """How much later than the others it arrived, over all collectives where it was last."""
    cause: LateCause
    """The largest cause."""
    finding: str = ""
    """Id of the sync, if it was one."""
    parts: tuple[tuple[LateCause, float], ...] = ()
    """Lateness by cause, µs, largest first."""


class PathSegment(msgspec.Struct, frozen=True):
    """A part of a step's critical path: what the job waited for between two collectives."""

    step: int
    rank: int
    """The rank that worked."""
    begin_us: float
    """Time since the begin of the first step, on the job's clock."""
    end_us: float
    collective: str
    """The collective at its end, e.g. `AllReduce`; empty at a step's end."""


class Unread(msgspec.Struct, frozen=True):
    """A trace that isn't part of the job's analysis, and why."""

    path: str
    reason: str


class Fleet(msgspec.Struct, frozen=True):
    """Everything syncscan knows about one job."""

    ranks: tuple[JobRank, ...]
    """Ranks by number."""
    world_size: int | None
    missing: tuple[int, ...]
    """Ranks of the job without a readable trace."""
    unread: tuple[Unread, ...]
    steps: tuple[int, ...]
    """Numbers of the steps that all ranks recorded."""
    observed_us: float
    """The job's step as recorded."""
    unprofiled_us: float | None
    """The job's step without the profiler, where capture timed it."""
    lateness: tuple[Lateness, ...]
    """The delaying rank of each step that has one."""
    path: tuple[PathSegment, ...]
    findings: tuple[Finding, ...]
    """Findings of all ranks, merged by id, by the job's gain: the rest is that of the lowest rank."""
    baseline_us: float | None
    """The job's step as replayed; None where it can't be."""
    recoverable_us: float | None
    """Gain of the job without all findings."""
    recoverable_range_us: tuple[float, float] | None
    matched: int
    """Collectives that are in the traces of all their ranks."""
    unmatched: int
    """Collectives that some rank's trace is missing: they keep their recorded duration."""
    notes: tuple[str, ...]
    """Sentences on unknown facts, with the reason."""

    @property
    def replayed(self) -> bool:
        """Return whether gains are for the whole job."""
        return self.baseline_us is not None

    @property
    def step_us(self) -> float:
        """The job's step that gains are fractions of: replayed, else without the profiler, else recorded."""
        return self.baseline_us or self.unprofiled_us or self.observed_us

    @property
    def stretch(self) -> float | None:
        """Ratio of the step time with to that without the profiler; None if the latter wasn't measured."""
        return self.observed_us / self.unprofiled_us if self.unprofiled_us else None

    def __repr__(self) -> str:
        ranks, findings = len(self.ranks), len(self.findings)
        return f"<Fleet of {ranks} rank{'s' * (ranks != 1)}: {findings} finding{'s' * (findings != 1)}>"

    def to_frame(self) -> pd.DataFrame:
        """Return a tidy pandas frame of ranks, steps and findings, with the columns of `report.frames.JOB_COLUMNS`."""
        from syncscan.report.frames import fleet_frame

        return fleet_frame(self)
