"""Write races for JSON."""

from __future__ import annotations

from msgspec.structs import asdict

from syncscan.model.race import Race


class RaceDocument(Race, frozen=True, kw_only=True):
    """Two unordered uses of the same memory, and the sentences on such a race."""

    title: str
    why: str
    fix: str


def race_document(race: Race) -> RaceDocument:
    """Return a race with the sentences on its kind."""
    return RaceDocument(**asdict(race), **asdict(race.text))
