"""A dry run compared with a recording: what each finding costs there; figures are the recording's, never scaled."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from syncscan.model.finding import Counterpart, Finding


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
