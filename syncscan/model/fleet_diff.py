"""Differences between two states of a job: syncs removed, new or changed on which ranks, and the job's step."""

from __future__ import annotations

import msgspec

from syncscan.model.diff import Promise, SiteStatus, StepChange
from syncscan.model.fleet import JobFinding
from syncscan.model.rank import RankFinding


class JobSite(msgspec.Struct, frozen=True, kw_only=True):
    """The findings at one place of a job, over rules and ranks; times in µs per step."""

    findings: tuple[JobFinding, ...]
    ranks: tuple[int, ...]
    """Ranks that have it, ascending."""
    per_step: float
    """Waits per step on the rank with the most."""
    wait_us: float
    """The longest wait of any rank; 0 where none could be measured."""
    gain_us: float | None
    """The largest gain of the job without one of its findings; None without a replay."""

    @property
    def first(self) -> RankFinding:
        """The finding that represents the site."""
        return self.findings[0].first

    @property
    def intended(self) -> bool:
        """Return whether the wait is intended, or not the program's own."""
        return all(f.first.intended for f in self.findings)


class JobChange(msgspec.Struct, frozen=True, kw_only=True):
    """One place before and after; None where it is absent."""

    change: SiteStatus
    before: JobSite | None
    after: JobSite | None
    how_often: bool = False
    how_long: bool = False
    other_ranks: bool = False
    """Whether its ranks differ from before."""

    @property
    def site(self) -> JobSite:
        """The site after the change, or before it if it was removed."""
        site = self.after or self.before
        assert site is not None
        return site

    @property
    def worse(self) -> bool:
        """Return whether it is new, waits more often than before, or on more ranks."""
        if self.before is None or self.after is None:
            return self.change is SiteStatus.NEW
        often = self.how_often and self.after.per_step > self.before.per_step
        return often or (self.other_ranks and len(self.after.ranks) > len(self.before.ranks))


class JobState(msgspec.Struct, frozen=True, kw_only=True):
    """One of two states of a job."""

    ranks: int
    steps: int
    held_up_us: float
    """How much later than the others the latest rank arrives; mean per step."""
    holders: tuple[int, ...]
    """Ranks that are the latest of a step, worst first."""


class FleetDiff(msgspec.Struct, frozen=True, kw_only=True):
    """Two states of a job, compared place by place and as a whole."""

    before: JobState
    after: JobState
    changes: tuple[JobChange, ...]
    """New sites first, then changed, removed and same ones, each by longest wait."""
    step: StepChange
    """Change of the job's step."""
    promise: Promise | None
    """The earlier state's projected gain of the job without the removed syncs; None without any."""
    notes: tuple[str, ...] = ()

    @property
    def worse(self) -> tuple[JobChange, ...]:
        """Places that are new, wait more often or on more ranks, except intended waits."""
        return tuple(c for c in self.changes if not c.site.intended and c.worse)

    def of(self, change: SiteStatus) -> tuple[JobChange, ...]:
        """Return the places with this change."""
        return tuple(c for c in self.changes if c.change is change)
