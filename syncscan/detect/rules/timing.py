"""Match an explicit synchronize whose next call reads the time between two events, or inside timing code."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal
from syncscan.model.runtime_calls import is_elapsed_time, is_event_query, only_asks

_TIMERS = ("triton/testing.py", "torch/utils/benchmark", "timeit.py")


def match(call: Call) -> Match | None:
    if not call.facts.synchronizes or call.ops:
        return None
    following = [n for n in call.after[:4] if not only_asks(n)]
    queried = [is_event_query(n) for n in call.after[:2]] == [True, True] and following[:1] == ["INVALID"]
    if not (queried or any(map(is_elapsed_time, following[:1])) or _in_a_timer(call)):
        return None
    return Match(
        values={"api": call.facts.api},
        removal=Removal.NOTHING,
    )


def _in_a_timer(call: Call) -> bool:
    return call.in_frame(*_TIMERS) or call.in_function("do_bench", "blocked_autorange")
