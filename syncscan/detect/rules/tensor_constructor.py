"""Match a copy to the device inside a constructor: by its C frame, or by what follows it."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal

SMALL = 512
"""Bytes up to which the data are taken as constants, not as a batch: 64 numbers of 8 bytes."""
_CONSTRUCTORS = ("tensor", "as_tensor", "new_tensor", "asarray", "FloatTensor", "LongTensor", "scalar_tensor")


def match(call: Call) -> Match | None:
    if call.facts.direction != "HtoD":
        return None
    lifted = "aten::lift_fresh" in call.after[:1] or call.after[:1] == ("aten::detach_",)
    if not (lifted or call.called(*_CONSTRUCTORS)):
        return None
    return Match(
        variant="small" if call.copies_at_most(SMALL) else "",
        removal=Removal.PINNED_COPY,
    )
