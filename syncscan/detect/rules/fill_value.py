"""A fill value on the device is read back.

## What it finds

`masked_fill(mask, v)`, `index_fill(dim, index, v)`, `fill_(v)`, `F.pad(…, value=v)` with `v` a zero-dimensional
tensor on the device (or on another one).

## Why it stalls

The kernel takes the value as an argument of its launch, so the host must know it.

## How it shows in the trace

`aten::masked_fill_ > aten::item`, `aten::index_fill_ > aten::item`, `aten::fill_ > aten::item`.

## Example

```python
value = x.amax()
result = x.masked_fill(mask, value)
```

## Use instead

```python
value = x.amax()
result = torch.where(mask, value, x)
```

## When it is fine

With a Python number or a CPU scalar there is no wait.

## Versions

Read in torch 2.6 and seen in traces of 2.11.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.Tensor.masked_fill_.html
- aten/src/ATen/native/cuda/Indexing.cu (masked_fill__cuda)
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.model.finding import Cause, Diagnosis, Removal

ID = "fill-value"
NAME = "A fill value is read back"
CAUSE = Cause.READBACK

_FIXES = {
    "aten::masked_fill_": "torch.where(mask, value, x) takes the value from the device; a Python number doesn't wait "
    "either.",
    "aten::masked_fill": "torch.where(mask, value, x) takes the value from the device; a Python number doesn't wait "
    "either.",
    "aten::index_fill_": "index_copy_ or scatter_ with a tensor of values, or a Python number.",
    "aten::index_fill": "index_copy_ or scatter_ with a tensor of values, or a Python number.",
    "aten::fill_": "x.copy_(value.expand_as(x)) for a value of the same device.",
    "aten::constant_pad_nd": "Give a Python number as value.",
}


def match(call: Call) -> Diagnosis | None:
    """A scalar read inside an op that fills."""
    op = call.first(*_FIXES)
    if not (op and call.scalar):
        return None
    name = op.removeprefix("aten::")
    return Diagnosis(
        ID,
        NAME,
        CAUSE,
        title=f"{name} waits for its value",
        why=f"{name} takes its value as an argument of the launch; a zero-dimensional device tensor is read back for "
        "it.",
        fix=_FIXES[op],
        when_fine="Outside of the loop.",
        removal=Removal.KERNELS,
    )
