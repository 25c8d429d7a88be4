"""Saving a checkpoint copies tensors to the host one by one.

## What it finds

`torch.save`, distributed checkpoints, `state_dict()` copied to the CPU.

## Why it stalls

Every tensor is copied into pageable memory with a wait of its own.

## How it shows in the trace

Copies to the host with frames of `torch/serialization.py`, `torch/distributed/checkpoint/` or a C frame `cpu` below
them.

## Example

```python
import io
buffer = io.BytesIO()
torch.save({"x": x}, buffer)
result = buffer.tell() > 0
```

## Use instead

```python
import io
buffer = io.BytesIO()
torch.save({"x": x.to("cpu")}, buffer)  # one snapshot, written by another thread
result = buffer.tell() > 0
```

## When it is fine

A checkpoint is rare, and its consistency matters more. `torch.distributed.checkpoint.async_save` copies into pinned
memory and writes in the background; `torch.utils.serialization.config.save.use_pinned_memory_for_d2h` speeds
`torch.save` up.

## Versions

`async_save` since torch 2.3; `use_pinned_memory_for_d2h` since about torch 2.7.

## References

- https://docs.pytorch.org/docs/stable/distributed.checkpoint.html
- torch/serialization.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.model.finding import Cause, Diagnosis

ID = "checkpoint-save"
NAME = "Saving copies tensors to the host"
CAUSE = Cause.READBACK


def match(call: Call) -> Diagnosis | None:
    """A copy to the host inside torch's saving code."""
    if not (call.direction == "DtoH" and call.in_library("torch/serialization.py", "distributed/checkpoint", ": save")):
        return None
    return Diagnosis(
        ID,
        NAME,
        CAUSE,
        title="saving a checkpoint waits for every tensor",
        why="Each tensor is copied into pageable memory, with a wait of its own.",
        fix="Save rarely; torch.distributed.checkpoint.async_save copies into pinned memory and writes in the "
        "background.",
        when_fine="A checkpoint is rare, and its consistency matters more.",
    )
