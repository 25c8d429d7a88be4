"""Match a wait inside torch.distributions, or its way of asking whether all is valid."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal


def match(call: Call) -> Match | None:
    all_true = call.top == "aten::is_nonzero" and call.before[-1:] == ("aten::_is_all_true",)
    if not (all_true or call.in_library("torch/distributions")):
        return None
    return Match(
        for_caller=True,
        removal=Removal.NOTHING,
    )
