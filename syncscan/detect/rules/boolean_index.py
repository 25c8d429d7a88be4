"""`x[mask]` reads the number of selected elements back to the host.

## What it finds

Reading through a boolean mask on the device: `x[mask]`, `x[mask1, :, mask2]`.

## How it shows in the trace

`aten::index > aten::nonzero` with a copy to the host and a `cudaStreamSynchronize`.

## Example

```python
result = x[mask].mean()
```

## Use instead

```python
result = torch.where(mask, x, 0).sum() / mask.sum()
```

## Versions

Checked in the source of torch 2.6 and in traces of 2.11; for the pinned count see `nonzero`.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.where.html
- aten/src/ATen/native/IndexingUtils.h (expandTensors)
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "boolean-index"
NAME = "Boolean indexing reads its length back"
CAUSE = Cause.SHAPE
WHY = """\
The result of `x[mask]` has one element per true element of the mask: indexing turns the mask into indices with
`nonzero`, and the host waits for the device to count them.

Each mask in the index costs one wait, and its backward another.
"""
WHEN_FINE = """\
When only a small part of the elements is selected and much work follows on them: the static form computes on all
elements.

Guard divisions: an empty mask gives 0/0. If `x` may contain NaN or infinity, use `torch.where` before the arithmetic,
never `x * mask`.
"""


def match(call: Call) -> Match | None:
    """Match `aten::index` over `aten::nonzero`."""
    if not (call.under("aten::index") and call.under("aten::nonzero")):
        return None
    return Match(
        title="x[mask] waits for the number of selected elements",
        fix="Keep the shape: torch.where(mask, x, 0) and weighted reductions, (x * mask).sum() / mask.sum() in "
        "place of x[mask].mean(); in losses ignore_index or reduction='none' times the mask.",
        removal=Removal.KERNELS,
    )
