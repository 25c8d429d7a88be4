"""A check for NaN or infinity reads its result back in every step.

## What it finds

`if torch.isnan(loss)`, `torch.isnan(x).any().item()`, `assert torch.isfinite(loss).all()`.

## How it shows in the trace

`aten::isnan`, `aten::isinf` or `aten::isfinite`, maybe `aten::any` or `aten::all`, then `aten::is_nonzero >
aten::item` or `aten::item`.

## Example

```python
loss = x.square().mean()
if torch.isnan(loss):
    raise RuntimeError("NaN")
result = loss
```

## Use instead

```python
loss = x.square().mean()
bad_steps = torch.zeros((), device=device)
bad_steps += torch.isnan(loss)  # read it every N steps
result = torch.nan_to_num(loss)
```

## Versions

Checked in the source of torch 2.6 and in traces of 2.11.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.isnan.html
- aten/src/ATen/native/cuda/CUDAScalar.cu
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "nan-guard"
NAME = "A NaN guard reads its result back"
CAUSE = Cause.CHECK
WHY = """\
The host checks whether a value is finite, but the value is ready only after all queued work.
"""
WHEN_FINE = """\
When a NaN must stop the run at once, or every few hundred steps.

To skip an update on the device multiply it by `torch.isfinite(loss)` or use `torch.where`; `torch._assert_async` raises
on the device and ends the CUDA context.
"""

_GUARDS = ("aten::isnan", "aten::isinf", "aten::isfinite")
_REDUCTIONS = ("aten::any", "aten::all", "aten::logical_not", "aten::bitwise_not", "aten::sum", "aten::max")


def match(call: Call) -> Match | None:
    """Match a value read back directly after a test for finite numbers."""
    if not call.scalar or call.top not in ("aten::item", "aten::is_nonzero"):
        return None
    guard = call.nearest_before(_is_no_reduction, 4)
    if guard not in _GUARDS:
        return None
    test = guard.removeprefix("aten::")
    return Match(
        title=f"a guard with {test} waits for its result",
        fix="Count on the device (bad += torch.isnan(loss)) and read the count every N steps; replace NaNs "
        "on the device with torch.nan_to_num or torch.where(torch.isfinite(loss), loss, 0).",
        removal=Removal.NOTHING,
    )


def _is_no_reduction(op: str) -> bool:
    return op not in _REDUCTIONS
