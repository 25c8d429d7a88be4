"""Rules about what holds for the whole trace, or is meant."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.model.finding import Diagnosis, Use
from syncscan.model.runtime_calls import is_event_synchronize
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
