"""Collectives of Python objects bring sizes and bytes to the host.

## What it finds

`all_gather_object`, `broadcast_object_list`, `gather_object`, `scatter_object_list` and `send_object_list` with NCCL.

## Why it stalls

The pickled object is copied to the device, its size exchanged and read back, the result copied to the host and
unpickled.

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
result = x.mean()  # all_reduce of a tensor, read every some steps
```

## When it is fine

Rarely: at the end of an epoch, or in a group made with `backend='gloo'`, which keeps objects on the host.

## Versions

All versions.

## References

- https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.all_gather_object
- torch/distributed/distributed_c10d.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.model.finding import Cause, Diagnosis

ID = "object-collective"
NAME = "Object collectives go through the host"
CAUSE = Cause.DIST

_OBJECTS = ("_object_list", "_gather_object", ": gather_object", "_to_object", "_object_to_tensor", "send_object")

_COLLECTIVES = ("c10d::", "nccl:", "record_param_comms")
_PACKING = frozenset(
    "empty set_ to lift_fresh detach detach_ zeros ones select unsqueeze squeeze resize_ slice cat item view narrow "
    "resolve_conj resolve_neg alias".split()
)


def match(call: Call) -> Diagnosis | None:
    """A wait inside torch's object collectives: by its frames, or by the ops since bytes became a tensor."""
    if not (call.in_library(*_OBJECTS) or _since_bytes(call)):
        return None
    return Diagnosis(
        ID,
        NAME,
        CAUSE,
        title="a collective of Python objects waits for sizes and bytes",
        why="With NCCL the pickled object goes to the device and back, and its size is read on the host.",
        fix="Exchange tensors (all_reduce, all_gather_into_tensor), or objects in a process group with backend='gloo'.",
        when_fine="Once an epoch.",
    )


def _since_bytes(call: Call) -> bool:
    """Whether a tensor was made of bytes a few ops ago, and a collective lies near, with nothing foreign between."""
    before = call.before[-24:]
    marks = [i for i in range(len(before) - 1) if before[i : i + 2] == ("aten::empty", "aten::set_")]
    if not marks or call.top not in ("aten::to", "aten::item"):
        return False
    since = before[marks[-1] + 2 :]
    near = any(n.startswith(_COLLECTIVES) for n in (*since, *call.after[:12]))
    return near and all(n.startswith(_COLLECTIVES) or n.removeprefix("aten::") in _PACKING for n in since)
