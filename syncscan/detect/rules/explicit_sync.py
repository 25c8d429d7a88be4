"""The program asks to wait: `torch.cuda.synchronize()`, `stream.synchronize()`, `event.synchronize()`.

## What it finds

Explicit synchronizes of a device, a stream or an event, also `torch.accelerator.synchronize` and
`torch.xpu.synchronize`.

## How it shows in the trace

`cudaDeviceSynchronize`, `cudaStreamSynchronize` or `cudaEventSynchronize` (on ROCm `hip…`) without an op around it;
torch's sync debug mode sees only that of streams.

## Example

```python
result = (x @ x).sum()
if device == "cuda":
    torch.cuda.synchronize()
```

## Use instead

```python
result = (x @ x).sum()
```

## Versions

Event synchronizes are hidden in traces of torch 1.12 to 2.1.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.cuda.synchronize.html
- https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__STREAM.html
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal
from syncscan.model.race import RaceKind

ID = "explicit-sync"
NAME = "Explicit synchronize"
CAUSE = Cause.EXPLICIT
RACE = RaceKind.READ_BEFORE_COPY
WHY = """\
The program waits explicitly; the host launches nothing meanwhile.

torch orders the work of a stream, and copies before their consumers: a synchronize is needed only before the
host reads memory that it filled with `non_blocking=True`.
"""
WHEN_FINE = """\
Around a measurement outside of the loop, or before the host reads a buffer that a `non_blocking` copy fills (an event
is enough).

Before another library takes the memory. Between streams use `stream.wait_stream` or `wait_event`: the device waits,
not the host.
"""

_WHAT = {"Device": "the whole device", "Ctx": "the whole device", "Context": "the whole device", "Event": "an event"}


def match(call: Call) -> Match | None:
    """Match any synchronize without an op around it and without a copy."""
    if not call.facts.synchronizes or call.ops:
        return None
    what = next((text for word, text in _WHAT.items() if word in call.facts.api), "a stream")
    return Match(
        title=f"{call.facts.api}: the program waits for {what}",
        fix="Remove it from the loop, unless it comes before a read of a non_blocking copy: there call "
        "event.synchronize() on an event recorded after the copy. For timing, read events after the loop; between "
        "streams, use wait_stream or wait_event.",
        removal=Removal.NOTHING,
    )
