"""Match a scalar read inside BatchNorm's forward, or between its counter and its op."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal, Use


def match(call: Call) -> Match | None:
    if not call.scalar or not (call.in_library("torch/nn/modules/batchnorm.py") or _counted(call)):
        return None
    return Match(
        use=Use.STEERS,
        removal=Removal.NOTHING,
    )


def _counted(call: Call) -> bool:
    """Return whether it reads what was counted up just before, and normalizes next."""
    counted = call.top == "aten::item" and call.before[-1:] == ("aten::add_",)
    return counted and any("batch_norm" in n for n in call.after[:3])
