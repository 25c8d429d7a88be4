"""`torch.masked_select` reads the number of selected elements back to the host.

## What it finds

`torch.masked_select(x, mask)` and `x.masked_select(mask)`; and the backward of `masked_fill` with a tensor as its
value, and of `masked_scatter`, which select the elements for the gradients of value and source.

## How it shows in the trace

`aten::masked_select` over `aten::nonzero` (on some versions `aten::index > aten::nonzero`), with a copy to the host.

## Example

```python
result = torch.masked_select(x, mask).sum()
```

## Use instead

```python
result = torch.where(mask, x, 0).sum()
```

## Versions

Checked in the source of torch 2.6 and in traces of 2.11; on the CPU the chain differs (`aten::item`).

## References

- https://docs.pytorch.org/docs/stable/generated/torch.masked_select.html
- aten/src/ATen/native/cuda/IndexKernel.cpp
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "masked-select"
NAME = "masked_select reads its length back"
CAUSE = Cause.SHAPE
WHY = """\
The result has one element per true element of the mask; the host waits for the device to count them before it can
allocate it.
"""
WHEN_FINE = """\
When few elements are selected and much work follows on them.

The backward of `masked_select` doesn't wait again.
"""


_IN_BACKWARD = {
    "MaskedFillBackward": (
        "masked_fill",
        "torch.where(mask, value, x) gives the same result, and its backward doesn't wait; a plain number doesn't "
        "wait either.",
    ),
    "MaskedScatterBackward": (
        "masked_scatter",
        "Place by index: at = (mask.flatten().cumsum(0) - 1).clamp(min=0), then "
        "torch.where(mask, source.flatten()[at].view_as(x), x).",
    ),
}
"""Autograd's nodes that select, by how their names begin, with the op and what to write instead."""


def match(call: Call) -> Match | None:
    """Match anything below `aten::masked_select`."""
    if not call.under("aten::masked_select"):
        return None
    for node, (op, fix) in _IN_BACKWARD.items():
        if call.backward.startswith(node):
            title = f"the backward of {op} waits for the number of selected elements"
            return Match(title=title, fix=fix, removal=Removal.KERNELS)
    return Match(
        title="masked_select waits for the number of selected elements",
        fix="torch.where(mask, x, fill) keeps the shape; reduce with the mask: torch.where(mask, x, 0).sum().",
        removal=Removal.KERNELS,
    )
