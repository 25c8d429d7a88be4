"""`torch.tensor([a, b])` reads each device scalar back.

## What it finds

`torch.tensor`, `as_tensor` and `np.array` of a list of zero-dimensional device tensors.

## How it shows in the trace

Several `aten::item` and, for a device tensor, `aten::to` from pageable memory with `aten::lift_fresh` after it; a C
frame `tensor` around `aten::item`.

## Example

```python
result = torch.tensor([x.min(), x.max()], device=device)
```

## Use instead

```python
result = torch.stack([x.min(), x.max()])
```

## Versions

Checked in the source of torch 2.6 and in traces of 2.11.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.stack.html
- torch/csrc/utils/tensor_new.cpp
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Confidence, Removal

ID = "tensor-of-tensors"
NAME = "torch.tensor reads device scalars back"
CAUSE = Cause.READBACK
WHY = """\
The constructor reads each element back, with one wait each, and copies the result to the device.
"""
WHEN_FINE = """\
Outside of the loop.

Never in one: `torch.stack` does the same on the device.
"""

_CONSTRUCTORS = ("tensor", "as_tensor", "asarray", "new_tensor")


def match(call: Call) -> Match | None:
    """Match a scalar read inside the constructor of a tensor."""
    if not (call.top == "aten::item" or call.facts.direction == "HtoD") or call.called("item"):
        return None
    reads = call.top == "aten::item" and (call.called(*_CONSTRUCTORS) or _fills(call))
    if not (reads or _copies(call)):
        return None
    return Match(
        title="torch.tensor([…]) waits for every device scalar in its list",
        fix="torch.stack([a, b]) does the same on the device.",
        confidence=Confidence.HIGH if call.profiled else Confidence.MEDIUM,
        removal=Removal.NOTHING,
    )


def _fills(call: Call) -> bool:
    """Return whether the number goes into memory that was made for it, and that becomes a tensor."""
    return call.last_before_but("aten::item") == "aten::empty" and _next(call)[:2] == ["aten::to", "aten::lift_fresh"]


def _copies(call: Call) -> bool:
    """Return whether what was made of a number goes to the device."""
    read = call.facts.direction == "HtoD" and call.before[-1:] == ("aten::item",)
    return read and _next(call)[:1] == ["aten::lift_fresh"]


def _next(call: Call) -> list[str]:
    return [op for op in call.after[:16] if op != "aten::item"]
