"""Write races for JSON."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from syncscan.model.race import Race, RaceKind, RaceLine
from syncscan.report.document import about


class RaceDocument(Struct, frozen=True):
    """Two unordered uses of the same memory."""

    id: str
    kind: RaceKind
    first: Annotated[RaceLine | None, about("the earlier use; None if its line is unknown")]
    second: Annotated[RaceLine, about("the later use")]
    count: Annotated[int, about("number of occurrences in the run")]
    title: str
    why: str
    fix: str


def race_document(race: Race) -> RaceDocument:
    """Return a race as JSON has it."""
    text = race.text
    return RaceDocument(race.id, race.kind, race.first, race.second, race.count, text.title, text.why, text.fix)
