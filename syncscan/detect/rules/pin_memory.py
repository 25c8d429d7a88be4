"""Match host memory pinned or unpinned; only noted unless the host was blocked."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal
from syncscan.model.runtime_calls import pins


def match(call: Call) -> Match | None:
    if not pins(call.facts.apis[0]):
        return None
    return Match(
        values={"api": call.facts.apis[0]},
        intended=not call.facts.waited,
        removal=Removal.NOTHING,
    )
