"""Match a synchronize inside or next to a barrier."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal, Use


def match(call: Call) -> Match | None:
    inside = call.op_with("barrier") or call.in_library_function("barrier", "monitored_barrier")
    beside = call.facts.synchronizes and not call.ops and any("barrier" in n for n in call.before[-2:])
    if not (inside or beside):
        return None
    return Match(
        use=Use.NOTHING,
        removal=Removal.NOTHING,
    )
