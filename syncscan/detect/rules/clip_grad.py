"""Match a truth value of `isnan or isinf`, or one inside torch's clipping code."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal


def match(call: Call) -> Match | None:
    truth_value = call.under("aten::is_nonzero") and call.before[-1:] == ("aten::logical_or",)
    nonfinite = truth_value and any(n in call.before[-6:] for n in ("aten::isinf", "aten::isnan"))
    if not (nonfinite or call.in_library("torch/nn/utils/clip_grad.py")):
        return None
    return Match(
        removal=Removal.NOTHING,
    )
