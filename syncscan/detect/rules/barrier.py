"""`dist.barrier()` waits on the host for all ranks.

## What it finds

`torch.distributed.barrier()`, `monitored_barrier` and `Work.wait` with a timeout, with NCCL or RCCL.

## How it shows in the trace

`cudaStreamSynchronize` near `c10d::barrier` or `nccl:all_reduce_barrier` (`record_param_comms`), or with a frame of
`torch/distributed/distributed_c10d.py: barrier`.

## Example

```python
result = x.sum()  # torch.distributed.barrier()
```

## Use instead

Not run: a barrier needs several processes.

```python
result = x.sum()
```

## Versions

Checked in the source of torch 2.6.

## References

- https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.barrier
- torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal, Use

ID = "barrier"
NAME = "A barrier waits for all ranks"
CAUSE = Cause.DIST
WHY = """\
`dist.barrier()` is an all-reduce that the host waits for: all ranks and their queued work wait for the slowest
rank.
"""
WHEN_FINE = """\
Around file access, and at the start and the end of training.

Collectives synchronize the devices with each other, so no barrier is needed before one.
"""


def match(call: Call) -> Match | None:
    """Match a synchronize inside or next to a barrier."""
    inside = call.op_with("barrier") or call.in_library_function("barrier", "monitored_barrier")
    beside = call.facts.synchronizes and not call.ops and any("barrier" in n for n in call.before[-2:])
    if not (inside or beside):
        return None
    return Match(
        title="a barrier waits for all ranks and all queued work",
        fix="Remove it from the loop: collectives synchronize the devices with each other.",
        use=Use.NOTHING,
        removal=Removal.NOTHING,
    )
