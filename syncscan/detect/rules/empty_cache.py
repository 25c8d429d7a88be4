"""Match memory freed outside of any op, or a wait inside `empty_cache`."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal
from syncscan.model.runtime_calls import frees, unmaps


def match(call: Call) -> Match | None:
    api = call.facts.apis[0]
    outside = (frees(api) or unmaps(api)) and not call.ops
    if not (outside or call.in_library_function("empty_cache")):
        return None
    return Match(
        removal=Removal.NOTHING,
    )
