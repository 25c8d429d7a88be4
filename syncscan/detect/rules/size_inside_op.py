"""Match ops that read a size back themselves."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal

_OPS = (
    "aten::combinations",
    "aten::segment_reduce",
    "aten::_segment_reduce_backward",
    "aten::mode",
    "aten::linalg_matrix_exp",
    "aten::matrix_exp",
)


def match(call: Call) -> Match | None:
    op = call.first(*_OPS)
    if not op:
        return None
    name = op.removeprefix("aten::")
    return Match(
        values={"name": name, "reason": "to check its lengths" if name == "segment_reduce" else "for a size"},
        variant=name,
        removal=Removal.KERNELS,
    )
