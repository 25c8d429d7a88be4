"""Collectives of Python objects copy sizes and bytes to the host.

## What it finds

`all_gather_object`, `broadcast_object_list`, `gather_object`, `scatter_object_list` and `send_object_list` with NCCL.

## How it shows in the trace

Read-backs and copies with frames of `torch/distributed/distributed_c10d.py: …_object…`; without stacks `aten::empty`,
`aten::set_`, two copies to the device, a collective, `aten::item` and a copy to the host.

## Example

```python
result = x.mean().cpu()  # torch.distributed.all_gather_object(results, value)
```

## Use instead

Not run: a collective needs several processes.

```python
result = x.mean()  # all_reduce of a tensor, read every N steps
```

## Versions

All versions.

## References

- https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.all_gather_object
- torch/distributed/distributed_c10d.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal
from syncscan.model.slice_names import is_collective

ID = "object-collective"
NAME = "Object collectives go through the host"
CAUSE = Cause.DIST
WHY = """\
With NCCL, the pickled object is copied to the device, its size is exchanged and read back, and the result is copied
to the host and unpickled.
"""
WHEN_FINE = """\
Once per epoch.

A group with `backend='gloo'` keeps objects on the host.
"""

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
    """Match a wait inside torch's object collectives: by its frames, or by the ops since bytes became a tensor."""
    if not (call.in_library_function(*_OBJECTS) or _since_bytes(call)):
        return None
    return Match(
        title="a collective of Python objects waits for sizes and bytes",
        fix="Exchange tensors (all_reduce, all_gather_into_tensor), or objects in a process group with backend='gloo'.",
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
