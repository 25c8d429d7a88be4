"""Rules about synchronizes without a copy, and what is left."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.model.finding import Confidence, Diagnosis, Removal
from syncscan.model.runtime_calls import is_elapsed_time, is_event_query, is_query, only_asks


def polling(call: Call) -> Diagnosis | None:
    """Match a loop of queries that ended when the device was done."""
    if not is_query(call.point.api):
        return None
    what = "an event" if "Event" in call.point.api else "a stream"
    return Diagnosis(values={"api": call.point.api, "what": what})


_TIMERS = ("triton/testing.py", "torch/utils/benchmark", "timeit.py")


def timing(call: Call) -> Diagnosis | None:
    """Match an explicit synchronize whose next call reads the time between two events, or inside timing code."""
    if not call.point.synchronizes or call.ops:
        return None
    following = [n for n in call.after[:4] if not only_asks(n)]
    queried = [is_event_query(n) for n in call.after[:2]] == [True, True] and following[:1] == ["INVALID"]
    if not (queried or any(map(is_elapsed_time, following[:1])) or _in_a_timer(call)):
        return None
    return Diagnosis(values={"api": call.point.api})


def _in_a_timer(call: Call) -> bool:
    return call.place.in_frame(*_TIMERS) or call.place.in_function("do_bench", "blocked_autorange")


_WHAT = {"Device": "the whole device", "Ctx": "the whole device", "Context": "the whole device", "Event": "an event"}


def explicit_sync(call: Call) -> Diagnosis | None:
    """Match any synchronize without an op around it and without a copy."""
    if not call.point.synchronizes or call.ops:
        return None
    what = next((text for word, text in _WHAT.items() if word in call.point.api), "a stream")
    return Diagnosis(values={"api": call.point.api, "what": what})


def unclassified(call: Call) -> Diagnosis:
    """Match always: show the chain of ops and calls, and claim no cause."""
    return Diagnosis(
        values={"api": call.point.api, "place": f" in {call.op}" if call.op else ""},
        seen=f"The host waits in {' > '.join((*call.ops, *call.point.apis))}.",
        confidence=Confidence.LOW,
        removal=Removal.KERNELS,
    )
