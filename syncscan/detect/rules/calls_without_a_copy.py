"""Rules about calls that copy nothing: of the whole trace, of memory, synchronizes, and what is left."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.model.finding import Confidence, Diagnosis, Removal, Use
from syncscan.model.runtime_calls import (
    allocates,
    frees,
    is_elapsed_time,
    is_event_query,
    is_event_synchronize,
    is_query,
    only_asks,
    pins,
    unmaps,
)
from syncscan.model.slice_names import is_engine


def launch_blocking(call: Call) -> Diagnosis | None:
    """Match the one call that stands for all launches that wait."""
    return Diagnosis(values={"count": str(call.point.launches)}) if call.point.launches else None


def fsdp_rate_limiter(call: Call) -> Diagnosis | None:
    return Diagnosis(intended=True, use=Use.NOTHING) if call.place.in_scope("rate_limiter") else None


_FORWARD = "DistributedDataParallel.forward"


def ddp_statistics(call: Call) -> Diagnosis | None:
    """Match an event synchronize before the first op of DDP's forward, or inside its statistics."""
    waits = is_event_synchronize(call.point.api) and not call.ops
    opens = waits and call.place.directly_in_scope(_FORWARD) and not call.since_scope
    return Diagnosis(intended=True, use=Use.SHOWN) if opens or call.place.called("set_runtime_stats_and_log") else None


_QUESTIONS = (("aten::isnan", "aten::_is_any_true"), ("aten::ne", "aten::any"), ("aten::isnan", "aten::any"))


def anomaly_mode(call: Call) -> Diagnosis | None:
    """Match a truth value read by the autograd engine itself, outside of the node, without a hook's Python frames."""
    engine = bool(call.ops) and is_engine(call.ops[0]) and not call.backward
    if not (call.scalar and engine) or call.place.has_python_frames:
        return None
    if call.before[-2:] not in _QUESTIONS and not call.under("aten::_is_any_true"):
        return None
    return Diagnosis()


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
