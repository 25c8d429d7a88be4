"""`torch.masked_select` reads the number of selected elements back to the host.

## What it finds

`torch.masked_select(x, mask)` and `x.masked_select(mask)`.

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

Read in torch 2.6 and seen in traces of 2.11; on the CPU the chain differs (`aten::item`).

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
The result is as long as the mask has true elements; the host waits for the device to count them before it can allocate
it.
"""
WHEN_FINE = """\
When few elements are selected and much work follows on them.

The backward of `masked_select` doesn't wait again.
"""


def match(call: Call) -> Match | None:
    """Anything below `aten::masked_select`."""
    if not call.under("aten::masked_select"):
        return None
    return Match(
        title="masked_select waits for the number of selected elements",
        fix="torch.where(mask, x, fill) keeps the shape; reduce with the mask: torch.where(mask, x, 0).sum().",
        removal=Removal.KERNELS,
    )
