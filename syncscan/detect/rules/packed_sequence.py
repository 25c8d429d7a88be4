"""Match a read-back inside torch's packing code, or directly before the packing op."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal


def match(call: Call) -> Match | None:
    packs = (
        call.facts.direction != "HtoD" and call.top == "aten::to" and "aten::_pack_padded_sequence" in call.after[:6]
    )
    if not (packs or call.in_library("torch/nn/utils/rnn.py") or call.under("aten::_pack_padded_sequence")):
        return None
    return Match(
        removal=Removal.NOTHING,
    )
