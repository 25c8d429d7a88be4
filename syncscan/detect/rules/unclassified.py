"""Match always: show the chain of ops and calls, and claim no cause."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Confidence, Removal


def match(call: Call) -> Match:
    return Match(
        values={"api": call.facts.api, "place": f" in {call.op}" if call.op else ""},
        seen=f"The host waits in {' > '.join((*call.ops, *call.facts.apis))}.",
        confidence=Confidence.LOW,
        removal=Removal.KERNELS,
    )
