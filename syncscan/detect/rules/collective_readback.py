"""Match a read-back whose last ops before it are a collective's."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.op_names import reads_back
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal
from syncscan.model.slice_names import is_collective

_AVERAGES = ("aten::div_", "aten::div", "aten::detach", "aten::mul_")
"""Ops that programs apply to a reduced value before they read it."""


def match(call: Call) -> Match | None:
    if not reads_back(call):
        return None
    if not is_collective(call.nearest_before(_is_no_average, 3)):
        return None
    return Match(
        removal=Removal.NOTHING,
    )


def _is_no_average(op: str) -> bool:
    return op not in _AVERAGES
