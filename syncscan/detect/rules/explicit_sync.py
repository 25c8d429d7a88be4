"""Match any synchronize without an op around it and without a copy."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal

_WHAT = {"Device": "the whole device", "Ctx": "the whole device", "Context": "the whole device", "Event": "an event"}


def match(call: Call) -> Match | None:
    if not call.facts.synchronizes or call.ops:
        return None
    what = next((text for word, text in _WHAT.items() if word in call.facts.api), "a stream")
    return Match(
        values={"api": call.facts.api, "what": what},
        removal=Removal.NOTHING,
    )
