"""Match any scalar read without a more specific rule."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.op_names import choice
from syncscan.detect.rule import Match
from syncscan.model.finding import Confidence, Removal


def match(call: Call) -> Match | None:
    if not call.scalar:
        return None
    inside = call.top if call.top not in ("aten::item", "aten::_local_scalar_dense") else ""
    expression = ".item()" if call.called("item") or not call.profiled else "float() or int()"
    what, variant = _read(call) if not inside else ("a number", "")
    return Match(
        values={"expression": inside.removeprefix("aten::") or expression, "what": what},
        variant=variant,
        confidence=Confidence.MEDIUM if inside else Confidence.HIGH,
        removal=Removal.NOTHING,
    )


def _read(call: Call) -> tuple[str, str]:
    """Return what the number is, and which of the page's fixes it needs."""
    if op := choice(call):
        return f"the result of {op}", "choice"
    if call.before[-1:] == ("aten::select",):
        return "one element of a tensor", "element"
    return "a number", ""
