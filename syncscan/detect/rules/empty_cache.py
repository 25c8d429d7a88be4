"""`torch.cuda.empty_cache()` gives memory back to the driver, which drains the device.

## What it finds

`torch.cuda.empty_cache()` in the loop.

## Why it stalls

Freeing memory waits until the device is idle, and the next step has to allocate it all again. torch's sync debug mode
doesn't see it.

## How it shows in the trace

`cudaFree` (with expandable segments `cudaStreamSynchronize` and `cuMemUnmap`) without an op around it; a C frame
`_cuda_emptyCache`. `cudaMalloc` in the ops after it.

## Example

```python
result = (x @ x).sum()
if device == "cuda":
    torch.cuda.empty_cache()
```

## Use instead

```python
result = (x @ x).sum()  # memory stays in the allocator's cache
```

## When it is fine

Between phases, from training to evaluation, or when another process needs the memory. Against fragmentation:
`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`.

## Versions

All versions. Expandable segments since torch 2.1.

## References

- https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-memory-management
- c10/cuda/CUDACachingAllocator.cpp
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.model.finding import Cause, Diagnosis, Removal

ID = "empty-cache"
NAME = "empty_cache drains the device"
CAUSE = Cause.ALLOC

_FREES = ("cudaFree", "hipFree", "cuMemUnmap", "cuMemRelease")


def match(call: Call) -> Diagnosis | None:
    """Memory given back outside of any op, or a wait inside `empty_cache`."""
    outside = call.apis[0] in _FREES and not call.ops
    if not (outside or call.in_library(": empty_cache", "emptyCache")):
        return None
    return Diagnosis(
        ID,
        NAME,
        CAUSE,
        title="empty_cache waits for the device and gives its memory back",
        why="Memory can be freed only when the device is idle; the next step allocates it all again.",
        fix="Remove torch.cuda.empty_cache() from the loop. Against fragmentation set "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
        when_fine="Between phases, or when another process needs the memory.",
        removal=Removal.NOTHING,
    )
