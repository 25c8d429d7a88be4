"""Match a synchronize inside the rate limiter's annotation."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal, Use


def match(call: Call) -> Match | None:
    if not call.in_scope("rate_limiter"):
        return None
    return Match(
        intended=True,
        use=Use.NOTHING,
        removal=Removal.NOTHING,
    )
