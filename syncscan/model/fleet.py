"""What is found out about a job of many ranks: who holds whom up, what each finding costs it, what can't be said.

Times are µs a step unless said, on no rank's clock but the job's: its first rank's, with the others' aligned to it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from syncscan.model.rank import RankAnalysis, RankFinding

if TYPE_CHECKING:
    import pandas as pd


STRETCHED = 1.25
"""From so many times the unprofiled step on, the hosts' lateness in the trace says little: each lags as far as it was
slowed down (H200: two equal ranks were up to 9 ms apart in steps of 35 ms that took 18 without the profiler)."""


class RankFrom(str, enum.Enum):
    """What says which rank a trace is of."""

    TRACE = "trace"
    """Its own `distributedInfo`."""
    NAME = "file name"
    ORDER = "order"


class Cause(str, enum.Enum):
    """Why a rank comes later to a collective than the others."""

    SYNC = "sync"
    """Its device stood idle behind a sync."""
    KERNELS = "kernels"
    """Its device worked longer."""
    INPUT = "input"
    """Its thread was longer in the DataLoader."""
    HOST = "host"
    """Its device stood idle, its host came late for none of these reasons."""
    BEFORE = "before"
    """It came late to the first collective of the recording, for what went before."""


class JobRank(msgspec.Struct, frozen=True):
    """One rank as the job sees it."""

    number: int
    of: RankAnalysis
    numbered_from: RankFrom
    clock_ns: int
    """What is added to its epoch times to get the job's."""
    holds_us: float
    """How much later than the others it came to the collectives at which it came last; mean of the steps."""
    waits_us: float
    """How long it waited in collectives for others; mean of the steps."""


class Lateness(msgspec.Struct, frozen=True):
    """The rank that held the others up in one step."""

    step: int
    """The step's number."""
    rank: int
    late_us: float
    """How much later than the others it came, over all collectives at which it was the last."""
    cause: Cause
    """What most of it was."""
    finding: str = ""
    """The id of the sync, where it was one."""
    parts: tuple[tuple[Cause, float], ...] = ()
    """All of it by cause, µs, the most first."""


class PathSegment(msgspec.Struct, frozen=True):
    """A part of the critical path through one step: what the job waited for from one collective to the next."""

    step: int
    rank: int
    """Whose work it was."""
    begin_us: float
    """Since the begin of the first step, on the job's clock."""
    end_us: float
    collective: str
    """What it leads up to, e.g. `AllReduce`; empty at a step's end."""


class JobFinding(msgspec.Struct, frozen=True):
    """A finding of one rank or more, merged by id, and what it costs the job."""

    first: RankFinding
    """As its lowest rank has it."""
    ranks: tuple[int, ...]
    """Those that have it, ascending."""
    wait_us: float | None
    """The longest of a rank's; None where none could be measured."""
    bubble_us: float | None
    alone_us: float | None
    """The most that the trace of one rank alone projects."""
    gain_us: float | None
    """What removing it on all its ranks would gain the job; None where the job can't be replayed."""
    range_us: tuple[float, float] | None

    @property
    def id(self) -> str:
        """Stable over runs of the same code."""
        return self.first.id


class Unread(msgspec.Struct, frozen=True):
    """A trace that isn't part of the job's analysis, and why."""

    path: str
    reason: str


class Fleet(msgspec.Struct, frozen=True):
    """Everything that was found out about one job."""

    ranks: tuple[JobRank, ...]
    """By their number."""
    world_size: int | None
    missing: tuple[int, ...]
    """Ranks of the job without a trace that could be read."""
    unread: tuple[Unread, ...]
    steps: tuple[int, ...]
    """Numbers of the steps that all ranks recorded."""
    observed_us: float
    """The job's step as recorded."""
    unprofiled_us: float | None
    """The same without the profiler, where capture timed it."""
    lateness: tuple[Lateness, ...]
    """For each step in which one rank held the others up, it."""
    path: tuple[PathSegment, ...]
    findings: tuple[JobFinding, ...]
    """The largest gain of the job first."""
    baseline_us: float | None
    """The job's step as replayed; None where it can't be."""
    recoverable_us: float | None
    """What removing all findings would gain the job."""
    recoverable_range_us: tuple[float, float] | None
    matched: int
    """Collectives that all their ranks' traces have."""
    unmatched: int
    """Those that some rank's trace lacks: they take what they took."""
    notes: tuple[str, ...]
    """What can't be told, and why; a sentence each."""
    _framer: ClassVar[Callable[..., Any] | None] = None
    """Makes the frame; `syncscan.fleet` hands it in, as a value can't import what draws it."""

    @property
    def replayed(self) -> bool:
        """Whether gains are of the whole job."""
        return self.baseline_us is not None

    @property
    def stretch(self) -> float | None:
        """How many times as long the step takes under the profiler; None where nobody timed it without."""
        return self.observed_us / self.unprofiled_us if self.unprofiled_us else None

    def __repr__(self) -> str:
        ranks, found = len(self.ranks), len(self.findings)
        return f"<Fleet of {ranks} rank{'s' * (ranks != 1)}: {found} finding{'s' * (found != 1)}>"

    def to_frame(self) -> pd.DataFrame:
        """A tidy pandas frame ranks x steps x findings; columns and dtypes as in `report.fleet_table.COLUMNS`."""
        if self._framer is None:
            raise RuntimeError("frames of a job are made by syncscan.fleet; import it first")
        frame: pd.DataFrame = self._framer()
        return frame
