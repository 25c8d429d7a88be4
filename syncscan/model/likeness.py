"""A dry run beside a recording: what each of its findings costs there; figures are the recording's, never scaled."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from syncscan.model.finding import Finding


class Counterpart(msgspec.Struct, frozen=True, kw_only=True):
    """What a recording has at the place of a dry run's finding; times in µs a step of the recording."""

    findings: tuple[Finding, ...]
    """The recording's, the longest wait first."""
    shared: tuple[str, ...]
    """Ids of the dry run's other findings that have the same ones: the figures are of all of them together."""
    per_step: float
    wait_us: float | None
    """None where the recording can't tell it."""
    bubble_us: float | None
    recoverable_us: float | None
    """What the recorded step would gain, each removed alone; None where that wasn't projected."""
    range_us: tuple[float, float] | None
    copied: tuple[float, float] | None
    """Bytes that a copy there moves in the dry run and in the recording; None where no more than a number is copied."""

    @property
    def other_size(self) -> bool:
        """Whether the copies are known to be of different sizes."""
        return self.copied is not None and round(self.copied[0]) != round(self.copied[1])


class Likeness(msgspec.Struct, frozen=True, kw_only=True):
    """Which findings of a dry run a recording has, and what they cost there."""

    path: str
    """Of the recording."""
    device: str
    steps: int
    step_us: float
    """The recording's step, without the profiler where that is known; 0 where it wasn't measured."""
    recoverable_us: float | None
    """What that step would gain without all of its syncs; None where that wasn't projected."""
    range_us: tuple[float, float] | None
    counterparts: Mapping[str, Counterpart]
    """By the ids of the dry run's findings; those that the recording doesn't have aren't in it."""
    unseen: tuple[Finding, ...]
    """The recording's findings that the dry run doesn't have, the costliest first."""

    @property
    def compared(self) -> tuple[tuple[str, Counterpart], ...]:
        """Those whose sizes are known on both sides, with the dry run's id."""
        return tuple((id, c) for id, c in self.counterparts.items() if c.copied is not None)
