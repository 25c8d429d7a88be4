"""A blocking copy from the host to the device waits for all queued work.

## What it finds

`x.to('cuda')`, `x.cuda()`, `device_tensor.copy_(cpu_tensor)` from pageable memory, or from pinned memory without
`non_blocking=True`.

## How it shows in the trace

`aten::to > aten::_to_copy > aten::copy_` with `Memcpy HtoD (Pageable -> Device)` or `(Pinned -> Device)` and a
`cudaStreamSynchronize`. A pinned copy with `non_blocking=True` has no synchronize and is no finding.

## Example

```python
batch = torch.ones(64, 64)
result = batch.to(device).sum()
```

## Use instead

```python
batch = torch.ones(64, 64)
if torch.cuda.is_available():
    batch = batch.pin_memory()  # by the data loader: DataLoader(pin_memory=True)
result = batch.to(device, non_blocking=True).sum()
```

## Versions

Checked in the source of torch 2.6 and in traces of 2.11. On ROCm one `hipMemcpyWithStream`.

## References

- https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
- aten/src/ATen/native/cuda/Copy.cu
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal
from syncscan.model.race import RaceKind

ID = "to-device"
NAME = "A copy to the device blocks"
CAUSE = Cause.PAGEABLE
RACE = RaceKind.WRITE_BEFORE_COPY
WHY = """\
Without `non_blocking=True`, or from pageable memory (which the driver stages), a copy ends with a synchronization
of its stream: the host waits for the copy and for all work queued before.
"""
WHEN_FINE = """\
For small copies once per step, or when loading before the loop.

Calling `pin_memory()` in the loop itself can be slower than a plain copy: let the data loader's thread do it. The
source must not be changed until the copy has run.
"""

_PINNED = "Pass non_blocking=True: the memory is pinned already. Don't change it until the copy has run."
_BATCH = (
    "A batch: DataLoader(pin_memory=True) and x.to(device, non_blocking=True); don't change it until the copy has run. "
    "A constant: create it once, before the loop, on the device."
)
_PAGEABLE = (
    "The same values each time: create them once, before the loop, on the device. New data: load it into pinned memory "
    "in another thread (DataLoader(pin_memory=True) if there is a loader), then x.to(device, non_blocking=True); "
    "don't change the source until the copy has run."
)


def match(call: Call) -> Match | None:
    """Match any blocking copy to the device without a more specific rule."""
    if call.facts.direction != "HtoD":
        return None
    return Match(
        title=f"a copy from {'pinned' if call.facts.pinned else 'pageable'} host memory waits",
        fix=_PINNED if call.facts.pinned else _BATCH if call.neighbours.loads else _PAGEABLE,
        removal=Removal.ASYNC_COPY if call.facts.pinned else Removal.PINNED_COPY,
    )
