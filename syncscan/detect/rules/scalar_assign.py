"""A Python number assigned through an index is copied to the device.

## What it finds

`x[index] = 1.0` with a device index, `x[0] = 5.0` and `x[i, j] = 1.0` of single elements.

## How it shows in the trace

`aten::index_put_ > aten::_index_put_impl_ > aten::to > … > aten::copy_`, or `aten::copy_` alone, with a `Memcpy HtoD
(Pageable -> Device)` of at most eight bytes.

## Example

```python
index = torch.arange(0, 64, 2, device=device)
y = x.clone()
y[index] = 1.0
result = y
```

## Use instead

```python
index = torch.arange(0, 64, 2, device=device)
y = x.clone()
y.index_fill_(0, index, 1.0)
result = y
```

## Versions

Later versions fill single elements without a copy (changed upstream in 2026).

## References

- https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_fill_.html
- aten/src/ATen/native/TensorAdvancedIndexing.cpp
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.op_names import INDEX_ASSIGNMENTS
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "scalar-assign"
NAME = "An assigned number is copied to the device"
CAUSE = Cause.PAGEABLE
WHY = """\
The Python number becomes a CPU tensor, and its copy to the device waits for all work queued before.
"""
WHEN_FINE = """\
Outside of the loop.

`x[mask] = 1.0` with a boolean mask doesn't wait (it is `masked_fill_`), nor does a number for a whole row or slice
(`x[0] = 5.0` of a matrix is a fill, measured); for single elements `x[i, j : j + 1] = 5.0` or `x[i, j].fill_(5.0)`.
"""

_SCALAR = 16


def match(call: Call) -> Match | None:
    """Match a copy of one element to the device inside an assignment."""
    small = call.facts.direction == "HtoD" and call.copies_at_most(_SCALAR) and not call.copies_at_most(0)
    if not small:
        return None
    through_index = call.under(*INDEX_ASSIGNMENTS) and call.copies_at_most(_SCALAR // 2)
    single = call.top == "aten::copy_" and call.before[-1:] in (("aten::select",), ("aten::slice",), ("aten::fill_",))
    if not (through_index or single):
        return None
    return Match(
        title=f"{'x[index] = number' if through_index else 'x[i] = number'} copies the number to the device "
        f"synchronously",
        fix="x.index_fill_(0, index, value) or a device tensor as value; for one element x[i : i + 1] = value or "
        "x[i].fill_(value), which don't copy.",
        removal=Removal.PINNED_COPY,
    )
