"""Match the one call that stands for all launches that wait."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal


def match(call: Call) -> Match | None:
    if not call.facts.launches:
        return None
    return Match(
        values={"count": str(call.facts.launches)},
        removal=Removal.NOTHING,
    )
