"""Match any blocking copy to the device without a more specific rule."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal


def match(call: Call) -> Match | None:
    if call.facts.direction != "HtoD":
        return None
    return Match(
        values={"memory": "pinned" if call.facts.pinned else "pageable"},
        variant="pinned" if call.facts.pinned else "batch" if call.neighbours.loads else "",
        removal=Removal.ASYNC_COPY if call.facts.pinned else Removal.PINNED_COPY,
    )
