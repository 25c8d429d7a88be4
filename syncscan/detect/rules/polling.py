"""Match a loop of queries that ended when the device was done."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal
from syncscan.model.runtime_calls import is_query


def match(call: Call) -> Match | None:
    if not is_query(call.facts.api):
        return None
    what = "an event" if "Event" in call.facts.api else "a stream"
    return Match(
        values={"api": call.facts.api, "what": what},
        removal=Removal.NOTHING,
    )
