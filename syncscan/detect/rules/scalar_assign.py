"""Match a copy of one element to the device inside an assignment."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.op_names import INDEX_ASSIGNMENTS
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal

_SCALAR = 16


def match(call: Call) -> Match | None:
    small = call.facts.direction == "HtoD" and call.copies_at_most(_SCALAR) and not call.copies_at_most(0)
    if not small:
        return None
    through_index = call.under(*INDEX_ASSIGNMENTS) and call.copies_at_most(_SCALAR // 2)
    single = call.top == "aten::copy_" and call.before[-1:] in (("aten::select",), ("aten::slice",), ("aten::fill_",))
    if not (through_index or single):
        return None
    return Match(
        values={"assignment": "x[index] = number" if through_index else "x[i] = number"},
        removal=Removal.PINNED_COPY,
    )
