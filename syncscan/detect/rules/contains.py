"""Match `Tensor.__contains__`, by its frame or by the ops it leaves."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal


def match(call: Call) -> Match | None:
    compared = call.top == "aten::item" and call.before[-2:] == ("aten::eq", "aten::any") and not call.has_frames
    if not (compared or call.in_library_function("__contains__")):
        return None
    return Match(
        removal=Removal.NOTHING,
    )
