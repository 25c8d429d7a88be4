"""Write races for JSON."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from syncscan.model.finding import Confidence
from syncscan.model.race import Race, RaceKind, RaceLine
from syncscan.report.document import about


class RaceDocument(Struct, frozen=True):
    """Two unordered uses of the same memory."""

    id: str
    kind: RaceKind
    first: Annotated[RaceLine | None, about("the earlier use; None if its line is unknown")]
    second: Annotated[RaceLine, about("the later use")]
    count: Annotated[int, about("number of occurrences in the run")]
    confidence: Annotated[
        Confidence, about("high in a dry run; medium in a recording, which has times and no addresses")
    ]
    title: str
    why: str
    fix: str


def race_document(race: Race) -> RaceDocument:
    """Return a race as JSON has it."""
    text = race.text
    words = (text.title, text.why, text.fix)
    return RaceDocument(race.id, race.kind, race.first, race.second, race.count, race.confidence, *words)
