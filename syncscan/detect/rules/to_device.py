"""A blocking copy from the host to the device waits for all queued work.

## What it finds

`x.to('cuda')`, `x.cuda()`, `device_tensor.copy_(cpu_tensor)` from pageable memory, or from pinned memory without
`non_blocking=True`.

## Why it stalls

Pageable memory is staged by the driver, and a blocking copy synchronises the stream at its end: the host waits for
the copy and for everything before it.

## How it shows in the trace

`aten::to > aten::_to_copy > aten::copy_` with `Memcpy HtoD (Pageable -> Device)` or `(Pinned -> Device)` and a
`cudaStreamSynchronize`. A pinned copy with `non_blocking=True` has no synchronise and is no finding.

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

## When it is fine

Small tensors once a step hardly matter. Calling `pin_memory()` in the loop itself can be slower than a plain copy:
let the data loader's thread do it. The source must not be changed until the copy has run.

## Versions

Read in torch 2.6 and seen in traces of 2.11. On ROCm one `hipMemcpyWithStream`.

## References

- https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
- aten/src/ATen/native/cuda/Copy.cu
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.model.finding import Cause, Diagnosis, Removal

ID = "to-device"
NAME = "A copy to the device blocks"
CAUSE = Cause.PAGEABLE

_PINNED = "Pass non_blocking=True: the memory is pinned already. Don't change it until the copy has run."
_PAGEABLE = (
    "DataLoader(pin_memory=True) and x.to(device, non_blocking=True); make constants on the device. pin_memory() in "
    "the loop itself can be slower than the plain copy."
)


def match(call: Call) -> Diagnosis | None:
    """Any blocking copy to the device that no more special rule has taken."""
    if call.direction != "HtoD":
        return None
    kind = "pinned memory, but without non_blocking=True," if call.pinned else "pageable memory"
    return Diagnosis(
        ID,
        NAME,
        CAUSE,
        title=f"a copy from {'pinned' if call.pinned else 'pageable'} host memory waits",
        why=f"The copy comes from {kind} and the host waits for it and for all work queued before.",
        fix=_PINNED if call.pinned else _PAGEABLE,
        when_fine="Small copies once a step; loading before the loop.",
        removal=Removal.ASYNC_COPY if call.pinned else Removal.PINNED_COPY,
    )
