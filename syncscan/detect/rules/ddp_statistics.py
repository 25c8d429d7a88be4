"""Match an event synchronize before the first op of DDP's forward, or inside its statistics."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal, Use
from syncscan.model.runtime_calls import is_event_synchronize

_FORWARD = "DistributedDataParallel.forward"


def match(call: Call) -> Match | None:
    waits = is_event_synchronize(call.facts.api) and not call.ops
    opens = waits and call.directly_in_scope(_FORWARD) and not call.since_scope
    if not (opens or call.called("set_runtime_stats_and_log")):
        return None
    return Match(
        intended=True,
        use=Use.SHOWN,
        removal=Removal.NOTHING,
    )
