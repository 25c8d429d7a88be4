"""Match a scalar read inside an op that fills."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal, Use

_OPS = (
    "aten::masked_fill_",
    "aten::masked_fill",
    "aten::index_fill_",
    "aten::index_fill",
    "aten::fill_",
    "aten::constant_pad_nd",
)


def match(call: Call) -> Match | None:
    op = call.first(*_OPS)
    if not (op and call.scalar):
        return None
    name = op.removeprefix("aten::")
    return Match(
        values={"name": name},
        variant=name,
        use=Use.STEERS,
        removal=Removal.KERNELS,
    )
