"""Match anything below one of the unique ops."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal

_FORMS = {
    "aten::_unique2": "torch.unique",
    "aten::_unique": "torch.unique",
    "aten::unique_consecutive": "torch.unique_consecutive",
    "aten::unique_dim": "torch.unique(dim=…)",
    "aten::unique_dim_consecutive": "torch.unique_consecutive(dim=…)",
}


def match(call: Call) -> Match | None:
    form = _FORMS.get(call.first(*_FORMS))
    if form is None:
        return None
    return Match(
        values={"form": form},
        removal=Removal.KERNELS,
    )
