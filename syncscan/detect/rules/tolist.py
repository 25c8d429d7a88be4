"""Match the copy of `tolist`, by its C frame or by the ops before it."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal


def match(call: Call) -> Match | None:
    resolved = call.before[-2:] == ("aten::resolve_conj", "aten::resolve_neg") and not call.profiled
    if not (call.facts.direction != "HtoD" and call.leaf == "aten::copy_" and (resolved or call.called("tolist"))):
        return None
    return Match(
        removal=Removal.ASYNC_COPY,
    )
