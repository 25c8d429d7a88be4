"""Match anything below `aten::masked_select`."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal

_IN_BACKWARD = {"MaskedFillBackward": "masked_fill", "MaskedScatterBackward": "masked_scatter"}
"""Autograd's nodes that select, by how their names begin, with the op."""


def match(call: Call) -> Match | None:
    if not call.under("aten::masked_select"):
        return None
    of = (op for node, op in _IN_BACKWARD.items() if call.backward.startswith(node))
    return Match(variant=next(of, ""), removal=Removal.KERNELS)
