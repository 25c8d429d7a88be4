"""Pinning host memory in the loop takes the driver's lock.

## What it finds

`t.pin_memory()`, `torch.empty(…, pin_memory=True)`, `cudaHostRegister` on the training thread.

## Why it stalls

Pinning asks the driver for memory under a global lock; freeing or unregistering it may wait for the device. The
caching host allocator spares both once its blocks fit.

## How it shows in the trace

`cudaHostAlloc`, `cudaMallocHost`, `cudaHostRegister`, `cudaFreeHost`, `cudaHostUnregister` (on ROCm `hipHostMalloc`,
…) on the training thread.

## Example

```python
batch = torch.ones(64, 64)
if torch.cuda.is_available():
    batch = batch.pin_memory()
result = batch.to(device, non_blocking=True).sum()
```

## Use instead

Not recorded: after the first step the host allocator's cache answers, and nothing is pinned.

```python
batch = torch.ones(64, 64)
result = batch.to(device).sum()  # or DataLoader(pin_memory=True): its own thread pins
```

## When it is fine

In the first steps, until the host allocator's cache is warm: it is only noted unless the host was held.

## Versions

All versions.

## References

- https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
- aten/src/ATen/cuda/CachingHostAllocator.cpp
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.model.finding import Cause, Diagnosis, Removal

ID = "pin-memory"
NAME = "Pinning memory in the step"
CAUSE = Cause.ALLOC

_PINS = ("HostAlloc", "MallocHost", "HostMalloc", "HostRegister", "FreeHost", "HostFree", "HostUnregister")


def match(call: Call) -> Diagnosis | None:
    """Host memory pinned or unpinned; only noted unless the host was held."""
    if not call.apis[0].endswith(_PINS):
        return None
    return Diagnosis(
        ID,
        NAME,
        CAUSE,
        title=f"{call.apis[0]} on the training thread",
        why="Pinned memory comes from the driver under a global lock, and giving it back may wait for the device.",
        fix="Let the data loader pin (DataLoader(pin_memory=True)), or reuse one pinned buffer.",
        when_fine="In the first steps, until the cache of pinned memory is warm.",
        intended=not call.waited,
        removal=Removal.NOTHING,
    )
