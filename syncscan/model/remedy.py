"""Changes worth making: syncs and habits in one list, ordered by gain."""

from __future__ import annotations

import msgspec

from syncscan.model.finding import Confidence
from syncscan.model.habit import Basis, Change


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """Syncs to remove together, or one habit to drop; times in µs per step."""

    findings: tuple[str, ...] = ()
    """Ids of the syncs; empty for a habit."""
    habit: str = ""
    """The habit's id; empty for syncs."""
    launches: str = ""
    """How the step launches too, as of `State`; empty where that stays."""
    compiled: Change = Change()
    """The change that this way to launch makes to the step without the syncs."""
    what: str
    """The change in a few words, from the rule."""
    alone_us: float
    """Gain if nothing else is changed."""
    range_us: tuple[float, float]
    """Range of that gain."""
    after_us: float | None
    """Gain after all entries above it in the list; None for upper bounds and samples, which aren't replayed."""
    basis: Basis
    confidence: Confidence
