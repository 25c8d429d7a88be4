"""Match any `aten::nonzero` without a more specific rule."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal

_FORMS = {
    "aten::where": "torch.where(condition)",
    "aten::argwhere": "torch.argwhere",
    "aten::nonzero_numpy": "nonzero(as_tuple=True)",
    "aten::nonzero": "torch.nonzero",
}


def match(call: Call) -> Match | None:
    if not call.under("aten::nonzero"):
        return None
    form = _FORMS[call.first(*_FORMS)]
    return Match(
        values={"form": form},
        removal=Removal.KERNELS,
    )
