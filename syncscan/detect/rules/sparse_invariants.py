"""Match a validation op of sparse tensors, or a constructor that looks for its size."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.op_names import COALESCES
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal

_CONSTRUCTORS = ("aten::sparse_coo_tensor", "aten::sparse_csr_tensor", "aten::sparse_compressed_tensor")


def match(call: Call) -> Match | None:
    op = next((op for op in call.ops if "_validate_" in op and ("sparse" in op or "compressed" in op)), "")
    op = op or call.first(*_CONSTRUCTORS)
    if not op or call.under(*COALESCES):
        return None
    return Match(
        removal=Removal.NOTHING,
    )
