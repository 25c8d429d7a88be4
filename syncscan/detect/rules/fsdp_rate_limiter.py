"""FSDP's rate limiter waits on purpose, to cap the memory of all-gathers in flight.

## What it finds

`FullyShardedDataParallel.rate_limiter`: an event synchronise before an all-gather.

## Why it stalls

The host runs ahead of the device; without the limit many unsharded layers would be allocated at once. It is
back-pressure.

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

## When it is fine

Normally: leave it. `limit_all_gathers=False` turns it off where memory allows, and rarely gains anything.

## Versions

FSDP1, since about torch 1.13. Event synchronises are hidden in traces of torch 1.12 to 2.1: only the annotation shows.

## References

- https://docs.pytorch.org/docs/stable/fsdp.html
- torch/distributed/fsdp/_runtime_utils.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.model.finding import Cause, Diagnosis, Removal

ID = "fsdp-rate-limiter"
NAME = "FSDP's rate limiter holds the host back"
CAUSE = Cause.DIST


def match(call: Call) -> Diagnosis | None:
    """A synchronise inside the rate limiter's annotation."""
    if not call.in_scope("rate_limiter"):
        return None
    return Diagnosis(
        ID,
        NAME,
        CAUSE,
        title="FSDP's rate limiter holds the host back",
        why="FSDP caps the all-gathers in flight, so that their memory stays bounded: the host waits for an earlier "
        "one.",
        fix="Leave it. limit_all_gathers=False turns it off where memory allows.",
        when_fine="Always: it is intended back-pressure, the device has work queued.",
        intended=True,
        removal=Removal.NOTHING,
    )
