"""Match anything below `aten::histc` or `aten::histogram`."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal


def match(call: Call) -> Match | None:
    if not call.under("aten::histc", "aten::histogram"):
        return None
    return Match(
        removal=Removal.KERNELS,
    )
