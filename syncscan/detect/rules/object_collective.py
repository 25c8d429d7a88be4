"""Match a wait inside torch's object collectives: by its frames, or by the ops since bytes became a tensor."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal
from syncscan.model.slice_names import is_collective

_OBJECTS = (
    *("all_gather_object", "gather_object", "broadcast_object_list", "scatter_object_list"),
    *("send_object_list", "recv_object_list", "_object_to_tensor", "_tensor_to_object"),
)
"""Functions of torch/distributed/distributed_c10d.py."""

_PACKING = frozenset(
    "empty set_ to lift_fresh detach detach_ zeros ones select unsqueeze squeeze resize_ slice "
    "cat item view narrow resolve_conj resolve_neg alias".split()
)


def match(call: Call) -> Match | None:
    if not (call.in_library_function(*_OBJECTS) or _since_bytes(call)):
        return None
    return Match(
        removal=Removal.NOTHING,
    )


def _since_bytes(call: Call) -> bool:
    """Return whether a tensor was made of bytes a few ops ago with a collective near, and nothing foreign between."""
    if call.top not in ("aten::to", "aten::item"):
        return False
    since = call.since(("aten::empty", "aten::set_"), most=24)
    if since is None:
        return False
    near = any(map(is_collective, since)) or call.nearest_after(is_collective, 12)
    return bool(near) and all(is_collective(n) or n.removeprefix("aten::") in _PACKING for n in since)
