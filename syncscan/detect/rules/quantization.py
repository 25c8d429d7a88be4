"""Match a quantization op around the call, or torch's quantization code."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal


def match(call: Call) -> Match | None:
    op = call.op_with("fake_quant", "quantize_per", "_obs_")
    if not (op or _observes(call) or call.in_library("torch/ao/quantization", "torchao")):
        return None
    what = op.removeprefix("aten::") or "a quantization observer"
    return Match(
        values={"what": what},
        removal=Removal.NOTHING,
    )


def _observes(call: Call) -> bool:
    """Return whether an observer looks at its extremes before it computes its scale: zero is mixed into both next."""
    if call.top != "aten::is_nonzero":
        return False
    following = [n for n in call.after[:8] if n not in ("aten::gt", "aten::is_nonzero", "aten::le")]
    return following[:3] == ["aten::zeros_like", "aten::min", "aten::zeros_like"]
