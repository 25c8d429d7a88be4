"""FSDP's rate limiter waits on purpose, to cap the memory of all-gathers in flight.

## What it finds

`FullyShardedDataParallel.rate_limiter`: an event synchronize before an all-gather.

## How it shows in the trace

`cudaEventSynchronize` inside the annotation `FullyShardedDataParallel.rate_limiter`.

## Example

```python
queue = []
result = x.sum()
```

## Use instead

Not run: FSDP needs several processes.

```python
result = x.sum()
```

## Versions

FSDP1, since about torch 1.13. Event synchronizes are hidden in traces of torch 1.12 to 2.1: only the annotation shows.

## References

- https://docs.pytorch.org/docs/stable/fsdp.html
- torch/distributed/fsdp/_runtime_utils.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal, Use

ID = "fsdp-rate-limiter"
NAME = "FSDP's rate limiter throttles the host"
CAUSE = Cause.DIST
WHY = """\
FSDP limits the all-gathers in flight, so that the memory of unsharded layers stays bounded when the host runs ahead:
the host waits for an earlier one, as back-pressure.
"""
WHEN_FINE = """\
Always: this is intended back-pressure, and the device has work queued.

`limit_all_gathers=False` turns it off where memory allows, and rarely gains anything.
"""


def match(call: Call) -> Match | None:
    """Match a synchronize inside the rate limiter's annotation."""
    if not call.in_scope("rate_limiter"):
        return None
    return Match(
        title="FSDP's rate limiter throttles the host",
        fix="Leave it. limit_all_gathers=False turns it off where memory allows.",
        intended=True,
        use=Use.NOTHING,
        removal=Removal.NOTHING,
    )
