"""`torch.cuda.empty_cache()` returns memory to the driver, which drains the device.

## What it finds

`torch.cuda.empty_cache()` in the loop.

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

## Versions

All versions. Expandable segments since torch 2.1.

## References

- https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-memory-management
- c10/cuda/CUDACachingAllocator.cpp
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal
from syncscan.model.runtime_calls import frees, unmaps

ID = "empty-cache"
NAME = "empty_cache drains the device"
CAUSE = Cause.ALLOC
WHY = """\
Memory can be freed only when the device is idle, and the next step has to allocate it all again.

torch's sync debug mode doesn't see this wait.
"""
WHEN_FINE = """\
Between phases, from training to evaluation, or when another process needs the memory.

Against fragmentation: `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`.
"""


def match(call: Call) -> Match | None:
    """Match memory freed outside of any op, or a wait inside `empty_cache`."""
    api = call.facts.apis[0]
    outside = (frees(api) or unmaps(api)) and not call.ops
    if not (outside or call.in_library_function("empty_cache")):
        return None
    return Match(
        title="empty_cache waits for the device and frees its memory",
        fix="Remove torch.cuda.empty_cache() from the loop. Against fragmentation set "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
        removal=Removal.NOTHING,
    )
