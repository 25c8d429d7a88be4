"""Match a wait inside torchmetrics' validation code."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal

_VALIDATES = ("_validation", "_check_", "_basic_")
"""Parts of the names of torchmetrics' functions that look at values: `_multiclass_stat_scores_tensor_validation`."""


def match(call: Call) -> Match | None:
    functions = call.functions_in_library("torchmetrics")
    if not any(part in function for function in functions for part in _VALIDATES):
        return None
    return Match(
        for_caller=True,
        removal=Removal.NOTHING,
    )
