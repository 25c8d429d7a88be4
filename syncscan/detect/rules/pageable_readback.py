"""Match a copy to pageable memory that no synchronize follows."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal, Use
from syncscan.model.runtime_calls import is_async_copy


def match(call: Call) -> Match | None:
    alone = len(call.facts.apis) == 1 and is_async_copy(call.facts.api)
    if not (alone and call.facts.direction == "DtoH" and not call.facts.pinned):
        return None
    return Match(
        use=Use.UNKNOWN,
        removal=Removal.ASYNC_COPY,
    )
