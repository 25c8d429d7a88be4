"""Match a blocking copy to the host among the reducer's own ops."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal, Use

_REDUCER = "torch.distributed.ddp.reducer::"
"""Names of the reducer's ops while it hands the reduced gradients back."""


def _is_reducers(op: str) -> bool:
    return op.startswith(_REDUCER)


def match(call: Call) -> Match | None:
    if not (call.top == call.leaf == "aten::copy_" and call.facts.direction == "DtoH"):
        return None
    if not (call.nearest_before(_is_reducers, 8) or call.nearest_after(_is_reducers, 8)):
        return None
    return Match(
        use=Use.STEERS,
        removal=Removal.NOTHING,
    )
