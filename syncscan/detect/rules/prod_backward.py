"""Match anything below the backward of prod or cumprod."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal


def match(call: Call) -> Match | None:
    if not call.backward.startswith(("ProdBackward", "CumprodBackward")):
        return None
    op, logarithms = ("cumprod", "cumsum") if call.backward.startswith("Cum") else ("prod", "sum")
    return Match(
        values={"op": op, "logarithms": logarithms},
        removal=Removal.KERNELS,
    )
