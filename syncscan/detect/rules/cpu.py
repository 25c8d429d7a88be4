"""`.cpu()` copies a tensor to the host and waits.

## What it finds

`t.cpu()`, `t.to('cpu')`, `t.cpu().numpy()`, `t.type(torch.FloatTensor)`, `cpu_tensor.copy_(t)`.

## How it shows in the trace

`aten::to > aten::_to_copy > aten::copy_` with `Memcpy DtoH (Device -> Pageable)`; the wait shows in
`cudaMemcpyAsync`.

## Example

```python
result = (x.argmax(-1) == 3).float().mean().cpu()
```

## Use instead

```python
buffer = torch.empty((), pin_memory=torch.cuda.is_available())
buffer.copy_((x.argmax(-1) == 3).float().mean(), non_blocking=True)
if device == "cuda":
    done = torch.cuda.Event()
    done.record()
    done.synchronize()  # a step later, where the value is read
result = buffer
```

## Versions

Checked in the source of torch 2.6 and in traces of 2.11; non-contiguous tensors are copied on the device first.

## References

- https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
- aten/src/ATen/native/cuda/Copy.cu
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.op_names import choice
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Confidence, Removal
from syncscan.model.race import RaceKind

ID = "cpu"
NAME = "A tensor is copied to the host"
CAUSE = Cause.READBACK
RACE = RaceKind.READ_BEFORE_COPY
WHY = """\
The tensor is copied to pageable host memory behind all work queued before, and the host waits for its end.
"""
WHEN_FINE = """\
For final results and checkpoints.

A result of `non_blocking=True` must not be read before an event recorded after the copy is done: until then it holds
garbage. A cast that stays on the device is `.type(torch.float32)` or `.float()`.
"""

_LATE = (
    "Read late: copy into a pinned buffer with non_blocking=True, then event.record(), go on, and read after "
    "event.synchronize() a step later; never without the event, and keep the buffer until then. Reduce on the device "
    "first."
)
_ACT = "Where the host acts on the choice at once, act for many at once, with one copy for all. "
_COPIES = ("", "aten::to", "aten::_to_copy", "aten::copy_", "aten::clone")
_CPU = ("", "aten::to", "aten::_to_copy")


def match(call: Call) -> Match | None:
    """Match any copy of a tensor to the host without a more specific rule; unknown direction gives low confidence."""
    to_host = call.facts.direction == "DtoH"
    if call.scalar or not (to_host or (not call.facts.copy and call.leaf == "aten::copy_")):
        return None
    return Match(
        title=f"{_call(call)} waits for a copy to the host",
        fix=_ACT + _LATE if choice(call) else _LATE,
        confidence=_confidence(call) if to_host else Confidence.LOW,
        removal=Removal.ASYNC_COPY,
    )


def _call(call: Call) -> str:
    """Return what the program called, as its author would write it."""
    if call.called("numpy"):
        return "numpy()"
    return ".cpu()" if call.top in _CPU else call.top.removeprefix("aten::")


def _confidence(call: Call) -> Confidence:
    return Confidence.HIGH if call.top in _COPIES else Confidence.MEDIUM
