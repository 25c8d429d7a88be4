"""Match an op with sparse in its name, or one that waits only for sparse tensors."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal

_PARTS = ("sparse", "csr", "csc", "_nnz", "indices_copy")


def match(call: Call) -> Match | None:
    name = call.op_with(*_PARTS)
    name = name or (call.first("aten::index_select") if call.scalar else call.first("aten::bmm", "aten::bmm_out"))
    if not name:
        return None
    op = name.removeprefix("aten::")
    return Match(
        values={"op": op},
        removal=Removal.KERNELS,
    )
