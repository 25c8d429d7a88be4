"""Match any copy of a tensor to the host without a more specific rule; unknown direction gives low confidence."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.op_names import choice
from syncscan.detect.rule import Match
from syncscan.model.finding import Confidence, Removal

_COPIES = ("", "aten::to", "aten::_to_copy", "aten::copy_", "aten::clone")
_CPU = ("", "aten::to", "aten::_to_copy")


def match(call: Call) -> Match | None:
    to_host = call.facts.direction == "DtoH"
    if call.scalar or not (to_host or (not call.facts.copy and call.leaf == "aten::copy_")):
        return None
    return Match(
        values={"call": _call(call)},
        variant="choice" if choice(call) else "",
        confidence=_confidence(call) if to_host else Confidence.LOW,
        removal=Removal.ASYNC_COPY,
    )


def _call(call: Call) -> str:
    """Return what the program called, as its author would write it."""
    if call.called("numpy"):
        return "numpy()"
    return ".cpu()" if call.top in _CPU else call.top.removeprefix("aten::")


def _confidence(call: Call) -> Confidence:
    return Confidence.HIGH if call.top in _COPIES else Confidence.MEDIUM
