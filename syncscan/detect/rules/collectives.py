"""Rules about what ranks exchange."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.op_names import reads_back
from syncscan.model.finding import Diagnosis, Removal, Use
from syncscan.model.slice_names import is_collective


def barrier(call: Call) -> Diagnosis | None:
    inside = call.op_with("barrier") or call.place.in_library_function("barrier", "monitored_barrier")
    beside = call.point.synchronizes and not call.ops and any("barrier" in n for n in call.before[-2:])
    return Diagnosis(use=Use.NOTHING) if inside or beside else None


_OBJECTS = (
    *("all_gather_object", "gather_object", "broadcast_object_list", "scatter_object_list"),
    *("send_object_list", "recv_object_list", "_object_to_tensor", "_tensor_to_object"),
)
"""Functions of torch/distributed/distributed_c10d.py."""

_PACKING = frozenset(
    "empty set_ to lift_fresh detach detach_ zeros ones select unsqueeze squeeze resize_ slice "
    "cat item view narrow resolve_conj resolve_neg alias".split()
)


def object_collective(call: Call) -> Diagnosis | None:
    """Match a wait inside torch's object collectives: by its frames, or by the ops since bytes became a tensor."""
    return Diagnosis() if call.place.in_library_function(*_OBJECTS) or _since_bytes(call) else None


def _since_bytes(call: Call) -> bool:
    """Return whether a tensor was made of bytes a few ops ago with a collective near, and nothing foreign between."""
    if call.top not in ("aten::to", "aten::item"):
        return False
    since = call.since(("aten::empty", "aten::set_"), most=24)
    if since is None:
        return False
    near = any(map(is_collective, since)) or call.nearest_after(is_collective, 12)
    return bool(near) and all(is_collective(n) or n.removeprefix("aten::") in _PACKING for n in since)


_REDUCER = "torch.distributed.ddp.reducer::"
"""Names of the reducer's ops while it hands the reduced gradients back."""


def _is_reducers(op: str) -> bool:
    return op.startswith(_REDUCER)


def unused_parameters(call: Call) -> Diagnosis | None:
    """Match a blocking copy to the host among the reducer's own ops."""
    if not (call.top == call.leaf == "aten::copy_" and call.point.direction == "DtoH"):
        return None
    if not (call.nearest_before(_is_reducers, 8) or call.nearest_after(_is_reducers, 8)):
        return None
    return Diagnosis(use=Use.STEERS)


def distributed(call: Call) -> Diagnosis | None:
    """Match a wait in the code of torch.distributed, not in the module it wraps."""
    fsdp = call.point.synchronizes and not call.ops and call.place.in_scope("FullyShardedDataParallel._", "FSDP::")
    return Diagnosis(removal=Removal.ASYNC_COPY) if fsdp or call.place.in_library("torch/distributed") else None


_AVERAGES = ("aten::div_", "aten::div", "aten::detach", "aten::mul_")
"""Ops that programs apply to a reduced value before they read it."""


def collective_readback(call: Call) -> Diagnosis | None:
    """Match a read-back whose last ops before it are a collective's."""
    if not reads_back(call):
        return None
    return Diagnosis() if is_collective(call.nearest_before(lambda op: op not in _AVERAGES, 3)) else None
