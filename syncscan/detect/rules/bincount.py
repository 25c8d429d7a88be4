"""`torch.bincount` reads the smallest and the largest value back to the host.

## What it finds

`torch.bincount(x)`, also with `minlength`.

## How it shows in the trace

`aten::bincount > aten::to > aten::_to_copy > aten::copy_` to pageable memory (the minimum) and `aten::bincount >
aten::item` (the maximum).

## Example

```python
result = torch.bincount(labels, minlength=8)
```

## Use instead

```python
result = torch.zeros(8, dtype=torch.long, device=device).scatter_add_(0, labels, torch.ones_like(labels))
```

## Versions

Checked in the source of torch 2.6 and in traces of 2.11.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.bincount.html
- aten/src/ATen/native/cuda/SummaryOps.cu
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "bincount"
NAME = "bincount reads its range back"
CAUSE = Cause.SHAPE
WHY = """\
The length of the result is the largest value, and negative values are rejected: the host reads both extremes back, also
with `minlength`.

An unsigned input avoids the check for negative values.
"""
WHEN_FINE = """\
When the number of classes isn't known beforehand.

`scatter_add_` adds in any order: exact for integers, not for floats.
"""


def match(call: Call) -> Match | None:
    """Match anything below `aten::bincount`."""
    if not call.under("aten::bincount"):
        return None
    return Match(
        title="bincount waits for its smallest and largest value",
        fix="torch.zeros(n, dtype=torch.long, device=x.device).scatter_add_(0, x, torch.ones_like(x)) for n known "
        "classes, or F.one_hot(x, n).sum(0).",
        removal=Removal.KERNELS,
    )
