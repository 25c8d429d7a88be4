"""The caching allocator frees and allocates device memory in the step.

## What it finds

`cudaFree` and `cudaMalloc` inside ops: memory is so scarce or fragmented that the cache is returned and allocated
again.

## How it shows in the trace

`cudaFree`, `cudaMalloc`, `cuMemUnmap`, `cuMemMap` (on ROCm `hipFree`, `hipMalloc`) below `aten::empty`,
`aten::empty_strided` and others.

## Example

```python
parts = [torch.empty(64 + i, 64, device=device) for i in range(4)]  # a new size each time
result = torch.ones(64, 64, device=device).sum()
```

## Use instead

Not recorded: running out of cached blocks can't be provoked in a few lines.

```python
buffer = torch.empty(68, 64, device=device)
parts = [buffer[: 64 + i] for i in range(4)]  # one size
result = torch.ones(64, 64, device=device).sum()
```

## Versions

All versions.

## References

- https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf
- c10/cuda/CUDACachingAllocator.cpp
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal
from syncscan.model.runtime_calls import allocates, frees, pins

ID = "allocator"
NAME = "The allocator frees memory in the step"
CAUSE = Cause.ALLOC
WHY = """\
The cache had no free block, because memory is short or shapes change from step to step: `cudaFree` waits until the
device is idle, `cudaMalloc` takes time on the host but doesn't wait for queued work.

Measurements show that `cudaMalloc` doesn't wait, so it is only noted.
"""
WHEN_FINE = """\
In the first steps.

Later: constant shapes or few padded sizes, a smaller peak, `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`.
"""


def match(call: Call) -> Match | None:
    """Match memory allocated or freed inside an op; allocation is only noted, unless the host was blocked."""
    api = call.facts.apis[0]
    drains = frees(api)
    if not drains and (pins(api) or not allocates(api)):
        return None
    return Match(
        title=f"{api} in the step" + (": the device drains" if drains or call.facts.waited else ""),
        fix="Constant shapes or few padded sizes, a smaller peak, PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
        intended=not drains and not call.facts.waited,
        removal=Removal.NOTHING,
    )
