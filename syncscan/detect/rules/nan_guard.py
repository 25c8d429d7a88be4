"""Match a value read back directly after a test for finite numbers."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal

_GUARDS = ("aten::isnan", "aten::isinf", "aten::isfinite")
_REDUCTIONS = ("aten::any", "aten::all", "aten::logical_not", "aten::bitwise_not", "aten::sum", "aten::max")


def match(call: Call) -> Match | None:
    if not call.scalar or call.top not in ("aten::item", "aten::is_nonzero"):
        return None
    guard = call.nearest_before(_is_no_reduction, 4)
    if guard not in _GUARDS:
        return None
    test = guard.removeprefix("aten::")
    return Match(
        values={"test": test},
        removal=Removal.NOTHING,
    )


def _is_no_reduction(op: str) -> bool:
    return op not in _REDUCTIONS
