"""Match `aten::nonzero` below the backward node of an indexing op."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal


def match(call: Call) -> Match | None:
    if not (call.backward.startswith(("IndexBackward", "IndexPutBackward")) and call.under("aten::nonzero")):
        return None
    return Match(
        removal=Removal.KERNELS,
    )
