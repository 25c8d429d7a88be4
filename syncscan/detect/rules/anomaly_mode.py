"""Match a truth value read by the autograd engine itself, outside of the node, without a hook's Python frames."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal
from syncscan.model.slice_names import is_engine

_QUESTIONS = (("aten::isnan", "aten::_is_any_true"), ("aten::ne", "aten::any"), ("aten::isnan", "aten::any"))


def match(call: Call) -> Match | None:
    engine = bool(call.ops) and is_engine(call.ops[0]) and not call.backward
    if not (call.scalar and engine) or call.has_python_frames:
        return None
    if call.before[-2:] not in _QUESTIONS and not call.under("aten::_is_any_true"):
        return None
    return Match(
        removal=Removal.NOTHING,
    )
