"""Code of `torch.distributed` waits: sharded state, offloading, uneven inputs, split sizes.

## What it finds

FSDP's state dicts and CPU offload, DDP's `Join`, DTensor comparisons, ZeRO's consolidation, pipeline validation,
`all_to_all_single` with sizes from the device.

## How it shows in the trace

A wait whose innermost frames are in `torch/distributed/`, or a synchronize inside an annotation of FSDP.

## Example

```python
result = x.sum()  # FSDP state_dict, CPU offload, Join, all_to_all with device sizes
```

## Use instead

Not run: these need several processes.

```python
result = x.sum()
```

## Versions

FSDP1 and FSDP2 differ in where they wait.

## References

- https://docs.pytorch.org/docs/stable/distributed.html
- torch/distributed/fsdp/, torch/distributed/algorithms/join.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "distributed"
NAME = "torch.distributed waits"
CAUSE = Cause.DIST
WHY = """\
Sharded state, CPU offload, uneven inputs and exchanged sizes need values, flags or whole parameters on the host.
"""
WHEN_FINE = """\
When saving or loading state, which is rare.

CPU offload trades waits for memory. Uneven inputs: equalize the batches. All-to-all: fix the capacity, or exchange
the sizes one step ahead.
"""


def match(call: Call) -> Match | None:
    """Match a wait in the code of torch.distributed, not in the module it wraps."""
    fsdp = call.facts.synchronizes and not call.ops and call.in_scope("FullyShardedDataParallel._", "FSDP::")
    if not (fsdp or call.in_library("torch/distributed")):
        return None
    return Match(
        title="torch.distributed waits for sizes, flags or offloaded parameters",
        fix="Offload only if memory demands it; save state rarely; equalize batches instead of Join; give "
        "all-to-all fixed sizes, or exchange them one step ahead.",
        removal=Removal.ASYNC_COPY,
    )
