"""FSDP2 with CPU offload waits for the copies of parameters and gradients.

## What it finds

`fully_shard(…, offload_policy=CPUOffloadPolicy())`: gradients that are copied to the host in backward and awaited at
its end, and parameters that are copied from pageable memory before each all-gather, if such a copy waited.

## How it shows in the trace

Frames of `torch/distributed/fsdp/_fully_shard/` around copies to the host or the device, or around an event's
synchronize.

## Example

```python
from torch.distributed.fsdp import CPUOffloadPolicy
result = {"offload_policy": CPUOffloadPolicy(pin_memory=False)}
```

## Use instead

Not run: FSDP2 needs several processes, and torch 2.6 for these names.

```python
from torch.distributed.fsdp import CPUOffloadPolicy
result = {"offload_policy": CPUOffloadPolicy()}  # pin_memory=True is the default; {} keeps all on the device
```

## Versions

Checked in the source of torch 2.11, and measured, except for the copies of parameters: those of 4 MB from pageable
memory, on a stream of their own, were not waited for on an H200.

Without an offload policy FSDP2 waits for nothing: streams wait for events, and it has no rate limiter
(fsdp-rate-limiter is FSDP1's).

## References

- https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html
- torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py (foreach_reduce), _fsdp_param.py (all_gather_inputs),
  _fsdp_param_group.py (finalize_backward)
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal, Use

ID = "fsdp2"
NAME = "FSDP2 waits for offloaded tensors"
CAUSE = Cause.PAGEABLE
WHY = """\
Parameters and gradients on the host have to be copied in each step: each copy from or to pageable memory blocks the
host, and the optimizer on the host can't begin before the last gradient has arrived.
"""
WHEN_FINE = """\
When the model doesn't fit on the devices otherwise: offload trades waits for memory.
"""

_FOLDER = "torch/distributed/fsdp/_fully_shard"

_PLACES = (
    # 2.11, _fsdp_param_group.py, finalize_backward: `fsdp_param.grad_offload_event.synchronize()`
    LibraryPlace(
        file=f"{_FOLDER}/_fsdp_param_group.py",
        functions=("finalize_backward",),
        title="FSDP2 waits until the gradients are on the host, where the optimizer runs",
        fix="This is intended with CPUOffloadPolicy. Without offload_policy, where memory allows, the optimizer runs "
        "on the device and nothing is copied.",
        cause=Cause.EXPLICIT,
        intended=True,
    ),
    # 2.11, _fsdp_collectives.py, foreach_reduce: `non_blocking = fsdp_param.pin_memory and not to_accumulate_grad`
    LibraryPlace(
        file=f"{_FOLDER}/_fsdp_collectives.py",
        functions=("foreach_reduce",),
        direction="DtoH",
        title="FSDP2 copies each gradient to the host synchronously",
        fix="CPUOffloadPolicy(pin_memory=True), the default, copies without a wait, unless gradients accumulate on the "
        "host: optimizer.zero_grad() in each step, and model.set_requires_gradient_sync(False) in all but the last of "
        "accumulated ones.",
        use=Use.NOTHING,
        removal=Removal.ASYNC_COPY,
    ),
    # 2.11, _fsdp_param.py, all_gather_inputs: `sharded_param_data.to(self.device, non_blocking=True)`, on a stream of
    # its own: no wait seen on an H200
    LibraryPlace(
        file=f"{_FOLDER}/_fsdp_param.py",
        functions=("all_gather_inputs",),
        direction="HtoD",
        title="FSDP2 copies parameters from pageable memory to the device",
        fix="CPUOffloadPolicy(pin_memory=True), the default: from pinned memory the copy doesn't wait.",
        removal=Removal.PINNED_COPY,
    ),
)


def match(call: Call) -> Match | None:
    """Match a wait in one of the places of the table."""
    return match_at(call, _PLACES)
