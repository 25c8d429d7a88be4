"""Match a scalar read that a view follows, not by a call of `item()`."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.op_names import converts_to_a_number
from syncscan.detect.rule import Match
from syncscan.model.finding import Confidence, Removal, Use

_VIEWS = {
    "aten::slice": "the bound of x[:n]",
    "aten::select": "the index of x[i]",
    "aten::narrow": "the bound of narrow",
    "aten::index": "the flag of x[flag]",
}

_INDEX_OF_FLAG = ("aten::zeros", "aten::empty", "aten::ones")
"""The index that `x[flag]` makes of its flag, of length one or zero."""

_AT_ONCE_NS = 10_000
"""A view begins 1.6 to 6.9 µs after the read of its bound; a slice of the next statement came after 11.1 µs.

(H200, torch 2.11, the zoo of ops without stacks; benchmarks/detect_thresholds.py.)
"""


def match(call: Call) -> Match | None:
    first, second = (*call.after[:2], "", "")[:2]
    flagged = first in _INDEX_OF_FLAG and second == "aten::index"
    view = _VIEWS.get(second if flagged else first, "")
    named = not (call.profiled or call.dry) and call.before[-1:] == (
        "aten::select",
    )  # t[k].item(), and then whatever follows
    if not (view and converts_to_a_number(call) and not named and call.followed_within(_AT_ONCE_NS)):
        return None
    return Match(
        values={"likely": "" if call.profiled else ", most likely", "view": view},
        confidence=Confidence.HIGH if call.profiled else Confidence.MEDIUM,
        use=Use.STEERS,
        removal=Removal.NOTHING,
    )
