"""Differences between two states of a program or job: syncs removed, new or changed, and the step time gained."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec

from syncscan.model.finding import Finding
from syncscan.model.json_text import Range, about


class SiteStatus(str, enum.Enum):
    """Change of a site; OCCASIONAL: in one state only, but in so few of its steps that it may be chance."""

    GONE = "gone"
    NEW = "new"
    CHANGED = "changed"
    OCCASIONAL = "occasional"
    SAME = "same"


class Spread(msgspec.Struct, frozen=True):
    """Count and distribution of measured values."""

    count: int
    mean: float
    variance: float
    """Variance of a single value; 0 with one value."""
    median: float

    @classmethod
    def of(cls, values: Sequence[float], count: int | None = None) -> Spread:
        """Return the distribution of these values, padded with zeros to `count`."""
        count = len(values) if count is None else max(count, len(values))
        if not count:
            return cls(0, 0.0, 0.0, 0.0)
        zeros, mean = count - len(values), sum(values) / count
        squares = sum((value - mean) ** 2 for value in values) + zeros * mean**2
        middle = count // 2 - zeros
        median = sorted(values)[middle] if middle >= 0 else 0.0
        return cls(count, mean, squares / (count - 1) if count > 1 else 0.0, median)


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """The findings at one place, whatever their rules, as matched between two states; times in µs per step.

    A job's site counts as one step, with the means of the rank that waits the most; its gain is the job's.
    """

    findings: tuple[Finding, ...]
    """Findings of all recordings of the state, those of the first recording first, longest wait first."""
    steps: int
    """Steps of all recordings."""
    seen: Mapping[int, tuple[float, float]]
    """Count and wait in each step that has the site, by the step's index."""
    bubble_us: float
    recoverable_us: float | None
    """Mean gain over recordings if it alone is removed; None without a projection."""
    once_compiled_us: float | None = None
    """Mean gain once the network is compiled and no other sync is left; None where that isn't projected."""
    always: bool
    """Whether one of the recordings has it in every step."""
    ranks: tuple[int, ...] = ()
    """Ranks of a job that have it, ascending."""

    @property
    def first(self) -> Finding:
        """The finding that represents the site."""
        return self.findings[0]

    @property
    def intended(self) -> bool:
        """Return whether the wait is intended, or not the program's own."""
        return all(f.intended for f in self.findings)

    @property
    def per_step(self) -> float:
        """Waits per step."""
        return self.counts.mean

    @property
    def wait_us(self) -> float:
        """Wait per step, µs."""
        return self.waits.mean

    @property
    def counts(self) -> Spread:
        """Distribution of the number of waits over all steps."""
        return Spread.of([float(count) for count, _ in self.seen.values()], self.steps)

    @property
    def waits(self) -> Spread:
        """Distribution of the wait over all steps."""
        return Spread.of([wait for _, wait in self.seen.values()], self.steps)


class SiteChange(msgspec.Struct, frozen=True, kw_only=True):
    """One place before and after; None where it is absent."""

    change: SiteStatus
    before: Site | None
    after: Site | None
    how_often: bool = False
    """Whether it waits more or less often than before."""
    how_long: bool = False
    """Whether it waits longer or shorter, by more than noise."""

    other_ranks: bool = False
    """Whether a job's ranks that have it differ from before."""

    @property
    def worse(self) -> bool:
        """Return whether it is new, or waits more often or on more ranks than before."""
        if self.before is None or self.after is None:
            return self.change is SiteStatus.NEW
        often = self.how_often and self.after.per_step > self.before.per_step
        return often or (self.other_ranks and len(self.after.ranks) > len(self.before.ranks))

    @property
    def site(self) -> Site:
        """The site after the change, or before it if it was removed."""
        site = self.after or self.before
        assert site is not None
        return site


class MovedWait(msgspec.Struct, frozen=True, kw_only=True):
    """The wait of removed syncs, at a place where the host now waits longer; µs per step."""

    to: Finding
    """The finding that represents that place."""
    before_us: float
    after_us: float
    us: Annotated[float, about("part of the wait that moved there")]


class StepChange(msgspec.Struct, frozen=True, kw_only=True):
    """A step before and after, µs; as recorded unless both states have times without the profiler."""

    before_us: float
    after_us: float
    margin_us: float
    """Half of the 95 % interval around the difference."""
    unprofiled: bool
    device_us: tuple[float, float]
    """Work of the busiest device per step, before and after."""
    ahead_us: tuple[float, float] | None = None
    """How far the host is ahead of the device at a step's median launch, before and after."""
    why_not: str = ""
    """Why the two can't be compared, as a sentence; empty where they can."""

    @property
    def saving_us(self) -> float:
        """How much shorter the step became."""
        return self.before_us - self.after_us

    @property
    def distinguishable(self) -> bool:
        """Return whether the difference is distinguishable from noise."""
        return not self.why_not and abs(self.saving_us) > self.margin_us


class PromiseOutcome(str, enum.Enum):
    """Whether the measured saving matches the projected one."""

    YES = "yes"
    LESS = "less"
    MORE = "more"
    UNKNOWN = "unknown"


class Promise(msgspec.Struct, frozen=True, kw_only=True):
    """The earlier state's projected saving without the removed syncs, scaled to the compared step; µs."""

    saving_us: float
    range_us: Range
    kept: PromiseOutcome


class DiffState(msgspec.Struct, frozen=True, kw_only=True):
    """One of two states: its recordings and their total number of steps, or a job's common ones."""

    paths: tuple[str, ...]
    steps: int
    device: str
    bound: str
    ranks: int | None = None
    """Ranks of a job; None without one."""
    held_up_us: float | None = None
    """How much later than a job's others the latest rank arrives; mean per step."""
    holders: tuple[int, ...] = ()
    """Ranks that are the latest of a step, worst first."""


class HabitChange(msgspec.Struct, frozen=True):
    """A habit that was removed or added."""

    change: SiteStatus
    rule: str
    scope: tuple[str, ...]


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """Two states of a program or job, compared place by place and as a whole."""

    before: DiffState
    after: DiffState
    changes: tuple[SiteChange, ...]
    """New sites first, then changed, removed, occasional and same ones, each by longest wait."""
    moved: tuple[MovedWait, ...]
    gone_wait_us: float
    """Wait of the removed syncs, as far as it may have moved."""
    step: StepChange
    promise: Promise | None
    """None where no sync was removed, or nothing was projected."""
    habits: tuple[HabitChange, ...] = ()
    """Notable habits that were added or removed, by rule and scope."""
    notes: tuple[str, ...] = ()
    """Other differences between the recordings, one sentence each."""
    unrelated: bool = False
    """Whether the two seem to be different programs, which a note says."""

    @property
    def worse(self) -> tuple[SiteChange, ...]:
        """Places that are new or wait more often or on more ranks, except intended waits."""
        return tuple(c for c in self.changes if not c.site.intended and c.worse)

    @property
    def of_job(self) -> bool:
        """Return whether the states are of a job."""
        return self.before.ranks is not None

    def of(self, change: SiteStatus) -> tuple[SiteChange, ...]:
        """Return the places with this change."""
        return tuple(c for c in self.changes if c.change is change)
