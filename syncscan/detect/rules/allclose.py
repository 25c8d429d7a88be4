"""Match `aten::allclose`, torch.testing, or a truth value of `isclose`."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal


def match(call: Call) -> Match | None:
    compared = any(name in call.before[-3:] for name in ("aten::isclose", "aten::allclose"))
    if not (
        (call.under("aten::is_nonzero") and compared)
        or call.under("aten::allclose")
        or call.in_library("torch/testing/_comparison.py", "torch/testing/_asserts.py")
    ):
        return None
    return Match(
        removal=Removal.KERNELS,
    )
