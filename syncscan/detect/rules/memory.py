"""Rules about memory that is pinned, allocated or freed."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.model.finding import Diagnosis
from syncscan.model.runtime_calls import allocates, frees, pins, unmaps


def pin_memory(call: Call) -> Diagnosis | None:
    """Match host memory pinned or unpinned; only noted unless the host was blocked."""
    if not pins(call.point.apis[0]):
        return None
    return Diagnosis(values={"api": call.point.apis[0]}, intended=not call.point.waited)


def empty_cache(call: Call) -> Diagnosis | None:
    """Match memory freed outside of any op, or a wait inside `empty_cache`."""
    api = call.point.apis[0]
    outside = (frees(api) or unmaps(api)) and not call.ops
    return Diagnosis() if outside or call.place.in_library_function("empty_cache") else None


def allocator(call: Call) -> Diagnosis | None:
    """Match memory allocated or freed inside an op; allocation is only noted, unless the host was blocked."""
    api = call.point.apis[0]
    drains = frees(api)
    if not drains and (pins(api) or not allocates(api)):
        return None
    return Diagnosis(
        values={"api": api, "effect": ": the device drains" if drains or call.point.waited else ""},
        intended=not drains and not call.point.waited,
    )
