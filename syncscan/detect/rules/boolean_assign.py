"""Match `aten::index_put_` over `aten::nonzero`, outside of backward."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.op_names import INDEX_ASSIGNMENTS
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal


def match(call: Call) -> Match | None:
    if not (call.under(*INDEX_ASSIGNMENTS) and call.under("aten::nonzero")):
        return None
    return Match(
        removal=Removal.KERNELS,
    )
