"""Match a copy to the device inside an indexing op, or one that an indexing op follows at once."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.op_names import INDEXINGS
from syncscan.detect.rule import Match
from syncscan.model.finding import Confidence, Removal

_BETWEEN = (
    "aten::lift_fresh",
    "aten::to",
    "aten::empty",
    "aten::unsqueeze",
    "aten::select",
    "aten::slice",
)


_ON_THE_HOST = Match(removal=Removal.PINNED_COPY)
_COPIED = Match(variant="table", removal=Removal.PINNED_COPY)
_EITHER = Match(variant="either", removal=Removal.PINNED_COPY, confidence=Confidence.MEDIUM, copied=_COPIED)


def match(call: Call) -> Match | None:
    if call.facts.direction != "HtoD":
        return None
    if call.under(*INDEXINGS):
        return _ON_THE_HOST
    if not _follows(call):
        return None
    directly = call.after[0] in INDEXINGS  # a list as an index is lifted first
    if call.called("to", "cuda"):
        return _COPIED if directly else None
    return _EITHER if directly and not call.profiled else _ON_THE_HOST


def _follows(call: Call) -> bool:
    """Return whether an indexing op comes next, which after a constructor indexes its detached result."""
    return call.top == "aten::to" and call.nearest_after(_is_not_between, 8) in INDEXINGS


def _is_not_between(op: str) -> bool:
    return op not in _BETWEEN
