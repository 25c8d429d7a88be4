"""`torch.bincount` reads the smallest and the largest value back to the host.

## What it finds

`torch.bincount(x)`, also with `minlength`.

## Why it stalls

The result is as long as the largest value, and negative values are an error: two read-backs, and `minlength` spares
neither (an unsigned input spares the check).

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

## When it is fine

When the number of classes is unknown. `scatter_add_` adds in any order: exact for integers, not for floats.

## Versions

Read in torch 2.6 and seen in traces of 2.11.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.bincount.html
- aten/src/ATen/native/cuda/SummaryOps.cu
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.model.finding import Cause, Diagnosis, Removal

ID = "bincount"
NAME = "bincount reads its range back"
CAUSE = Cause.SHAPE


def match(call: Call) -> Diagnosis | None:
    """Anything below `aten::bincount`."""
    if not call.under("aten::bincount"):
        return None
    return Diagnosis(
        ID,
        NAME,
        CAUSE,
        title="bincount waits for its smallest and largest value",
        why="The result is as long as the largest value, and negative values are refused: the host reads both "
        "extremes, "
        "also with minlength.",
        fix="torch.zeros(n, dtype=torch.long, device=x.device).scatter_add_(0, x, torch.ones_like(x)) for n known "
        "classes, or "
        "F.one_hot(x, n).sum(0).",
        when_fine="When the number of classes isn't known beforehand.",
        removal=Removal.KERNELS,
    )
