"""Match a scalar read inside the constructor of a tensor."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Confidence, Removal

_CONSTRUCTORS = ("tensor", "as_tensor", "asarray", "new_tensor")


def match(call: Call) -> Match | None:
    if not (call.top == "aten::item" or call.facts.direction == "HtoD") or call.called("item"):
        return None
    reads = call.top == "aten::item" and (call.called(*_CONSTRUCTORS) or _fills(call))
    if not (reads or _copies(call)):
        return None
    return Match(
        confidence=Confidence.HIGH if call.profiled else Confidence.MEDIUM,
        removal=Removal.NOTHING,
    )


def _fills(call: Call) -> bool:
    """Return whether the number goes into memory that was made for it, and that becomes a tensor."""
    return call.last_before_but("aten::item") == "aten::empty" and _next(call)[:2] == ["aten::to", "aten::lift_fresh"]


def _copies(call: Call) -> bool:
    """Return whether what was made of a number goes to the device."""
    read = call.facts.direction == "HtoD" and call.before[-1:] == ("aten::item",)
    return read and _next(call)[:1] == ["aten::lift_fresh"]


def _next(call: Call) -> list[str]:
    return [op for op in call.after[:16] if op != "aten::item"]
