"""Pinning host memory in the loop takes the driver's lock.

## What it finds

`t.pin_memory()`, `torch.empty(…, pin_memory=True)`, `cudaHostRegister` on the training thread.

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

Not recorded: after the first step, the host allocator's cache has the memory, and nothing is pinned.

```python
batch = torch.ones(64, 64)
result = batch.to(device).sum()  # or DataLoader(pin_memory=True): its own thread pins
```

## Versions

All versions.

## References

- https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
- aten/src/ATen/cuda/CachingHostAllocator.cpp
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal
from syncscan.model.race import RaceKind
from syncscan.model.runtime_calls import pins

ID = "pin-memory"
NAME = "Pinning memory in the step"
CAUSE = Cause.ALLOC
RACE = RaceKind.WRITE_BEFORE_COPY
WHY = """\
The driver allocates pinned memory under a global lock, and freeing or unregistering it may wait for the device.

The caching host allocator avoids both once it has fitting blocks.
"""
WHEN_FINE = """\
In the first steps, until the cache of pinned memory is warm.

It is only noted unless the host was blocked.
"""


def match(call: Call) -> Match | None:
    """Match host memory pinned or unpinned; only noted unless the host was blocked."""
    if not pins(call.facts.apis[0]):
        return None
    return Match(
        title=f"{call.facts.apis[0]} on the training thread",
        fix="Let the data loader pin (DataLoader(pin_memory=True)), or reuse one pinned buffer.",
        intended=not call.facts.waited,
        removal=Removal.NOTHING,
    )
