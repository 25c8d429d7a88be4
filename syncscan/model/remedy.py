"""One list of what is worth changing: syncs and habits together, in order of what they gain."""

from __future__ import annotations

import msgspec

from syncscan.model.finding import Confidence
from syncscan.model.habit import Basis


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """Syncs to remove together, or one habit to give up; times in µs a step."""

    findings: tuple[str, ...] = ()
    """Ids of the syncs; empty for a habit."""
    habit: str = ""
    """The habit's id; empty for syncs."""
    launches: str = ""
    """How the step launches too, as of `State`; empty where that stays."""
    what: str
    """In a few words, of the rule."""
    alone_us: float
    """What it gains if nothing else is changed."""
    range_us: tuple[float, float]
    """Of that gain."""
    after_us: float | None
    """What it gains after all those above it in the list; None for an upper bound, which isn't replayed."""
    basis: Basis
    confidence: Confidence
