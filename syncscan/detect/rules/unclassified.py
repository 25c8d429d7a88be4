"""A wait that no other rule knows: the chain is shown, and no cause is claimed.

## What it finds

Calls that can wait for the device for a reason that the trace doesn't tell: extensions, custom ops, libraries.

## How it shows in the trace

Any blocking call with ops that no rule names: a bare `cudaStreamSynchronize` inside a custom op, or a runtime call
that was measurably held until the device had drained.

## Example

```python
result = x.sum()  # my_extension.op(x)
```

## Use instead

Not run: it stands for what no rule knows.

```python
result = x.sum()
```

## Versions

All versions.

## References

- https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html
- https://docs.nvidia.com/cuda/thrust/ (`thrust::cuda::par_nosync`)
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Confidence, Removal

ID = "unclassified"
NAME = "Unclassified wait"
CAUSE = Cause.UNKNOWN
WHY = """\
The host is blocked inside the call; only its code shows why.
"""
WHEN_FINE = """\
When the value is needed on the host at this point.
"""


def match(call: Call) -> Match:
    """Match always: show the chain of ops and calls, and claim no cause."""
    return Match(
        title=f"{call.facts.api} waits for the device" + (f" in {call.op}" if call.op else ""),
        fix="Check the chain and the frames around it; record with stacks to get the line. In an extension, look "
        "for a synchronize, a copy to the host, or a Thrust algorithm without par_nosync.",
        seen=f"The host waits in {' > '.join((*call.ops, *call.facts.apis))}.",
        confidence=Confidence.LOW,
        removal=Removal.KERNELS,
    )
