"""Match anything below `aten::one_hot`."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal


def match(call: Call) -> Match | None:
    if not call.under("aten::one_hot"):
        return None
    return Match(
        removal=Removal.KERNELS,
    )
