"""Match a read-back that a split follows at once, or soon an all-to-all."""

from __future__ import annotations

import re

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Confidence, Removal

_ALL_TO_ALL = re.compile(r"all_?to_?all", re.IGNORECASE)
_SPLITS = ("aten::split_with_sizes", "aten::split", "aten::tensor_split", "aten::unsafe_split_with_sizes")


_SOON = 12
"""Ops and calls that may come between: the counts are read, tokens are put into the order of their ranks."""
_SMALL = 1 << 14
"""Bytes of the counts of some hundred experts at most."""


def is_all_to_all(name: str) -> bool:
    """Return whether an op exchanges parts of a tensor between all ranks: `c10d::alltoall_base_`, `nccl:all_to_all`."""
    return _ALL_TO_ALL.search(name) is not None


def match(call: Call) -> Match | None:
    reads = call.scalar or (call.facts.direction == "DtoH" and call.leaf == "aten::copy_")
    if not (reads and call.top in ("aten::to", "aten::item")):
        return None
    if not (call.after[:1] and call.after[0] in _SPLITS):
        return _exchange(call)
    return Match(confidence=Confidence.MEDIUM, removal=Removal.NOTHING)


def _exchange(call: Call) -> Match | None:
    """Return the sizes of a mixture of experts' exchange, or of another."""
    if not any(map(is_all_to_all, call.after[:_SOON])) or not call.copies_at_most(_SMALL):
        return None
    return Match(variant="exchange", confidence=Confidence.MEDIUM, removal=Removal.NOTHING)
