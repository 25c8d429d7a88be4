"""What differs between two states of a program: which syncs are gone, new or changed, and what the step gained."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

import msgspec

from syncscan.model.finding import Finding
from syncscan.model.habit import Habit


class Change(str, enum.Enum):
    """What became of a site; OCCASIONAL: there in one state only, but in so few of its steps that it may be chance."""

    GONE = "gone"
    NEW = "new"
    CHANGED = "changed"
    OCCASIONAL = "occasional"
    SAME = "same"


class Spread(msgspec.Struct, frozen=True):
    """How often something was measured, and how the values lie."""

    count: int
    mean: float
    variance: float
    """Of one value; 0 where there is only one."""
    median: float

    @classmethod
    def of(cls, values: Sequence[float], count: int | None = None) -> Spread:
        """Of these values, and of as many zeros as lack to `count`."""
        count = len(values) if count is None else max(count, len(values))
        if not count:
            return cls(0, 0.0, 0.0, 0.0)
        zeros, mean = count - len(values), sum(values) / count
        squares = sum((value - mean) ** 2 for value in values) + zeros * mean**2
        middle = count // 2 - zeros
        median = sorted(values)[middle] if middle >= 0 else 0.0
        return cls(count, mean, squares / (count - 1) if count > 1 else 0.0, median)


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """The findings of one place, whatever rule names them: what is matched between two states. Times: µs a step."""

    findings: tuple[Finding, ...]
    """Of all recordings of the state, those of the first one that has any first; the longest wait first."""
    steps: int
    """Of all recordings."""
    seen: Mapping[int, tuple[int, float]]
    """Which of them have it, by their place among all → how often and how long it waits there."""
    bubble_us: float
    recoverable_us: float | None
    """What removing it alone would gain, mean over recordings; None where none tells."""
    always: bool
    """Whether one of the recordings has it in each of its steps."""

    @property
    def first(self) -> Finding:
        """The finding that stands for it."""
        return self.findings[0]

    @property
    def intended(self) -> bool:
        """Whether the wait is meant, or not the program's own."""
        return all(f.diagnosis.intended for f in self.findings)

    @property
    def per_step(self) -> float:
        """How often it waits in a step."""
        return self.counts.mean

    @property
    def wait_us(self) -> float:
        """How long it waits in a step."""
        return self.waits.mean

    @property
    def counts(self) -> Spread:
        """How often it waits, over all steps."""
        return Spread.of([float(count) for count, _ in self.seen.values()], self.steps)

    @property
    def waits(self) -> Spread:
        """How long it waits, over all steps."""
        return Spread.of([wait for _, wait in self.seen.values()], self.steps)


class SiteChange(msgspec.Struct, frozen=True, kw_only=True):
    """One place before and after; None where it isn't there."""

    change: Change
    before: Site | None
    after: Site | None
    how_often: bool = False
    """Whether it waits more or less often than before."""
    how_long: bool = False
    """Whether it waits longer or shorter, by more than noise."""

    @property
    def more_often(self) -> bool:
        """Whether it waits more often than before."""
        return (
            self.how_often
            and self.after is not None
            and self.before is not None
            and (self.after.per_step > self.before.per_step)
        )

    @property
    def site(self) -> Site:
        """As it is now, or as it was."""
        found = self.after or self.before
        assert found is not None
        return found


class MovedWait(msgspec.Struct, frozen=True, kw_only=True):
    """The wait of syncs that are gone, at a place where the host now waits longer; µs a step."""

    to: Site
    before_us: float
    after_us: float
    us: float
    """The part of the wait that went there."""


class StepChange(msgspec.Struct, frozen=True, kw_only=True):
    """A step before and after, µs; the times are as recorded unless both states are known without the profiler."""

    before_us: float
    after_us: float
    margin_us: float
    """Half of the 95 % interval around their difference."""
    unprofiled: bool
    device_us: tuple[float, float]
    """How long the busiest device works in a step, before and after."""
    why_not: str = ""
    """A sentence: why the two can't be compared; empty where they can."""

    @property
    def saving_us(self) -> float:
        """How much shorter it became."""
        return self.before_us - self.after_us

    @property
    def told(self) -> bool:
        """Whether the difference can be told from noise."""
        return not self.why_not and abs(self.saving_us) > self.margin_us


class Kept(str, enum.Enum):
    """Whether what was measured is what had been projected."""

    YES = "as projected"
    LESS = "less than projected"
    MORE = "more than projected"
    UNKNOWN = "can't be told"


class Promise(msgspec.Struct, frozen=True, kw_only=True):
    """What the earlier state's projection said that removing what is gone would save, on the step's basis; µs."""

    saving_us: float
    range_us: tuple[float, float]
    kept: Kept


class State(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two states: its recordings, and how many steps they have in all."""

    paths: tuple[str, ...]
    steps: int
    device: str
    bound: str


class HabitChange(msgspec.Struct, frozen=True):
    """A habit that is gone or new."""

    change: Change
    habit: Habit


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """Two states of a program, place by place, and as a whole."""

    before: State
    after: State
    changes: tuple[SiteChange, ...]
    """What is new first, then changed, gone, occasional, the same; of each the longest wait first."""
    moved: tuple[MovedWait, ...]
    gone_wait_us: float
    """What the syncs that are gone had waited, as far as it may have moved."""
    step: StepChange
    promise: Promise | None
    """None where nothing is gone, or nothing had been projected."""
    habits: tuple[HabitChange, ...] = ()
    """Those that matter and came or went, by rule and scope."""
    notes: tuple[str, ...] = ()
    """What else differs between the recordings, a sentence each."""

    @property
    def worse(self) -> tuple[SiteChange, ...]:
        """The places that are new or wait more often, but for waits that are meant."""
        return tuple(c for c in self.changes if not c.site.intended and (c.change is Change.NEW or c.more_often))

    def of(self, change: Change) -> tuple[SiteChange, ...]:
        """The places of which this became."""
        return tuple(c for c in self.changes if c.change is change)
