"""Match memory allocated or freed inside an op; allocation is only noted, unless the host was blocked."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal
from syncscan.model.runtime_calls import allocates, frees, pins


def match(call: Call) -> Match | None:
    api = call.facts.apis[0]
    drains = frees(api)
    if not drains and (pins(api) or not allocates(api)):
        return None
    return Match(
        values={"api": api, "effect": ": the device drains" if drains or call.facts.waited else ""},
        intended=not drains and not call.facts.waited,
        removal=Removal.NOTHING,
    )
