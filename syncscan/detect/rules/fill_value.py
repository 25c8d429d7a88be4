"""A fill value on the device is read back.

## What it finds

`masked_fill(mask, v)`, `index_fill(dim, index, v)`, `fill_(v)`, `F.pad(…, value=v)` with `v` a zero-dimensional
tensor on the device (or on another one).

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

## Versions

Checked in the source of torch 2.6 and in traces of 2.11.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.Tensor.masked_fill_.html
- aten/src/ATen/native/cuda/Indexing.cu (masked_fill__cuda)
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal, Use

ID = "fill-value"
NAME = "A fill value is read back"
CAUSE = Cause.READBACK
WHY = """\
The kernel takes the value as a launch argument, so a zero-dimensional device tensor is read back.
"""
WHEN_FINE = """\
Outside of the loop.

With a Python number or a CPU scalar there is no wait.
"""

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


def match(call: Call) -> Match | None:
    """Match a scalar read inside an op that fills."""
    op = call.first(*_FIXES)
    if not (op and call.scalar):
        return None
    name = op.removeprefix("aten::")
    return Match(
        title=f"{name} waits for its value",
        fix=_FIXES[op],
        use=Use.STEERS,
        removal=Removal.KERNELS,
    )
