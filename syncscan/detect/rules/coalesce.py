"""Match anything below `aten::coalesce` or `aten::_coalesce`."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.op_names import COALESCES
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal


def match(call: Call) -> Match | None:
    if not call.under(*COALESCES):
        return None
    return Match(
        removal=Removal.KERNELS,
    )
