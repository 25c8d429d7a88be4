"""Rules about memory that is pinned, allocated or freed."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.runtime_calls import allocates, frees, pins, unmaps


def pin_memory(call: Call) -> Match | None:
    """Match host memory pinned or unpinned; only noted unless the host was blocked."""
    if not pins(call.facts.apis[0]):
        return None
    return Match(values={"api": call.facts.apis[0]}, intended=not call.facts.waited)


def empty_cache(call: Call) -> Match | None:
    """Match memory freed outside of any op, or a wait inside `empty_cache`."""
    api = call.facts.apis[0]
    outside = (frees(api) or unmaps(api)) and not call.ops
    return Match() if outside or call.place.in_library_function("empty_cache") else None


def allocator(call: Call) -> Match | None:
    """Match memory allocated or freed inside an op; allocation is only noted, unless the host was blocked."""
    api = call.facts.apis[0]
    drains = frees(api)
    if not drains and (pins(api) or not allocates(api)):
        return None
    return Match(
        values={"api": api, "effect": ": the device drains" if drains or call.facts.waited else ""},
        intended=not drains and not call.facts.waited,
    )
