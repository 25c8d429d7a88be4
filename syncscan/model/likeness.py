"""A dry run compared with a recording: what each finding costs there; figures are the recording's, never scaled."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from syncscan.model.finding import Finding


class CopiedBytes(msgspec.Struct, frozen=True):
    """Bytes copied at one place, in the dry run (`here`) and in the recording (`there`)."""

    here: float
    there: float


class Counterpart(msgspec.Struct, frozen=True, kw_only=True):
    """A recording's findings at the place of a dry run's finding; times in µs per step of the recording."""

    findings: tuple[str, ...]
    """Ids of the recording's findings, longest wait first."""
    shared_with: tuple[str, ...]
    """Ids of the dry run's other findings with the same counterparts: the figures are their total."""
    per_step: float
    wait_us: float | None
    """Wait; None where the recording can't tell."""
    bubble_us: float | None
    recoverable_us: float | None
    """Gain of the recorded step, each removed alone; None without a projection."""
    recoverable_range_us: tuple[float, float] | None
    copied_bytes: CopiedBytes | None
    """Size of a copy; None where no more than a number is copied."""

    @property
    def other_size(self) -> bool:
        """Return whether the copies are known to differ in size."""
        return self.copied_bytes is not None and round(self.copied_bytes.here) != round(self.copied_bytes.there)


class Likeness(msgspec.Struct, frozen=True, kw_only=True):
    """The findings of a dry run that a recording has, and their costs there."""

    path: str
    """Path of the recording."""
    device: str
    steps: int
    step_us: float
    """The recording's step, without the profiler where known; 0 where it wasn't measured."""
    recoverable_us: float | None
    """Gain of that step without all of its syncs; None without a projection."""
    range_us: tuple[float, float] | None
    counterparts: Mapping[str, Counterpart]
    """Counterparts by the ids of the dry run's findings, for those that the recording has."""
    unseen: tuple[Finding, ...]
    """The recording's findings that the dry run doesn't have, costliest first."""

    @property
    def compared(self) -> tuple[tuple[str, Counterpart], ...]:
        """Counterparts whose sizes are known on both sides, with the dry run's ids."""
        return tuple((id, c) for id, c in self.counterparts.items() if c.copied_bytes is not None)
