"""What differs between two states of a job: which syncs are gone, new or changed on which ranks, and the job's step."""

from __future__ import annotations

import msgspec

from syncscan.model.diff import Change, Promise, StepChange
from syncscan.model.fleet import JobFinding
from syncscan.model.rank import RankFinding


class JobSite(msgspec.Struct, frozen=True, kw_only=True):
    """The findings of one place of a job, over rules and ranks; times µs a step."""

    findings: tuple[JobFinding, ...]
    ranks: tuple[int, ...]
    """Those that have it, ascending."""
    per_step: float
    """Of the rank that has it the most often."""
    wait_us: float
    """The longest of a rank's; 0 where none could be measured."""
    gain_us: float | None
    """The most that removing one of its findings would gain the job; None where none was replayed."""

    @property
    def first(self) -> RankFinding:
        """The finding that stands for it."""
        return self.findings[0].first

    @property
    def intended(self) -> bool:
        """Whether the wait is meant, or not the program's own."""
        return all(f.first.intended for f in self.findings)


class JobChange(msgspec.Struct, frozen=True, kw_only=True):
    """One place before and after; None where it isn't there."""

    change: Change
    before: JobSite | None
    after: JobSite | None
    how_often: bool = False
    how_long: bool = False
    other_ranks: bool = False
    """Whether other ranks have it than before."""

    @property
    def site(self) -> JobSite:
        """As it is now, or as it was."""
        found = self.after or self.before
        assert found is not None
        return found

    @property
    def worse(self) -> bool:
        """Whether it is new, waits more often than before, or on more ranks."""
        if self.before is None or self.after is None:
            return self.change is Change.NEW
        often = self.how_often and self.after.per_step > self.before.per_step
        return often or (self.other_ranks and len(self.after.ranks) > len(self.before.ranks))


class JobState(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two states."""

    ranks: int
    steps: int
    held_up_us: float
    """How much later than the others the latest rank of a step comes, mean of the steps."""
    holders: tuple[int, ...]
    """Ranks that are the latest of a step, the worst first."""


class FleetDiff(msgspec.Struct, frozen=True, kw_only=True):
    """Two states of a job, place by place, and as a whole."""

    before: JobState
    after: JobState
    changes: tuple[JobChange, ...]
    """What is new first, then changed, gone, the same; of each the longest wait first."""
    step: StepChange
    """The job's step."""
    promise: Promise | None
    """What the earlier state's replay said that removing what is gone gains the job; None where nothing is."""
    notes: tuple[str, ...] = ()

    @property
    def worse(self) -> tuple[JobChange, ...]:
        """Places that are new, wait more often or on more ranks, but for waits that are meant."""
        return tuple(c for c in self.changes if not c.site.intended and c.worse)

    def of(self, change: Change) -> tuple[JobChange, ...]:
        """The places of which this became."""
        return tuple(c for c in self.changes if c.change is change)
