"""Match a call about a kernel that measurably blocked."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Confidence, Removal
from syncscan.model.runtime_calls import may_load_a_kernel


def match(call: Call) -> Match | None:
    if not may_load_a_kernel(call.facts.api):
        return None
    return Match(
        values={"api": call.facts.api},
        confidence=Confidence.MEDIUM,
        intended=True,
        removal=Removal.NOTHING,
    )
