"""A copy to the host with `non_blocking=True` into pageable memory blocks all the same.

## What it finds

`buffer.copy_(t, non_blocking=True)` into an ordinary CPU tensor. `t.to("cpu", non_blocking=True)` isn't one: torch pins
what it returns.

## How it shows in the trace

`aten::copy_` over `cudaMemcpyAsync` (`Device -> Pageable`) without a synchronize behind it.

## Example

```python
copy = torch.empty(x.shape)
copy.copy_(x, non_blocking=True)
if device == "cuda":
    torch.cuda.synchronize()
result = copy
```

## Use instead

```python
copy = torch.empty(x.shape, pin_memory=torch.cuda.is_available())
copy.copy_(x, non_blocking=True)
if device == "cuda":
    done = torch.cuda.Event()
    done.record()
    done.synchronize()  # only where the values are read
result = copy
```

## Versions

The same in all. `t.to("cpu", non_blocking=True)` has pinned its result for years (`pin_out` in `_to_copy`,
aten/src/ATen/native/TensorConversions.cpp), so it doesn't wait; to read it before an event is a race.

## References

- https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
- https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal, Use
from syncscan.model.race import RaceKind
from syncscan.model.runtime_calls import is_async_copy

ID = "pageable-readback"
NAME = "A non-blocking read-back blocks"
CAUSE = Cause.PAGEABLE
RACE = RaceKind.READ_BEFORE_COPY
WHY = """\
The driver can't write to pageable memory asynchronously: it waits inside the copy call, `cudaMemcpyAsync`.

torch's sync debug mode doesn't see this wait. Since no synchronize follows, reading the result too early is a bug on
other systems.
"""
WHEN_FINE = """\
For tiny copies.

Never read the result before an event that was recorded after the copy is done.
"""


def match(call: Call) -> Match | None:
    """Match a copy to pageable memory that no synchronize follows."""
    alone = len(call.facts.apis) == 1 and is_async_copy(call.facts.api)
    if not (alone and call.facts.direction == "DtoH" and not call.facts.pinned):
        return None
    return Match(
        title="a non_blocking copy to pageable memory still waits",
        fix="Copy into a pinned buffer: torch.empty(…, pin_memory=True).copy_(t, non_blocking=True), then "
        "event.record(), and read only after event.synchronize(): without it the values are garbage.",
        use=Use.UNKNOWN,
        removal=Removal.ASYNC_COPY,
    )
