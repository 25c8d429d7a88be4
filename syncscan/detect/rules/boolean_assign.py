"""`x[mask] = tensor` reads the number of masked elements back to the host.

## What it finds

Assigning a device tensor through a boolean mask: `x[mask] = values`, `x[mask] = zero_dim_tensor`, `index_put_` with
masks.

## How it shows in the trace

`aten::index_put_ > aten::_index_put_impl_ > aten::nonzero` with a copy to the host.

## Example

```python
y = x.clone()
y[mask] = x.amax()
result = y
```

## Use instead

```python
result = torch.where(mask, x.amax(), x)
```

## Versions

Checked in the source of torch 2.6 and in traces of 2.11.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.Tensor.masked_scatter_.html
- aten/src/ATen/native/TensorAdvancedIndexing.cpp (canDispatchToMaskedFill)
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.op_names import INDEX_ASSIGNMENTS
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "boolean-assign"
NAME = "Assignment through a mask reads its length back"
CAUSE = Cause.SHAPE
WHY = """\
Assigning a tensor through a boolean mask turns the mask into indices with `nonzero`, and the host waits for the
number of indices.

A Python number in place of the tensor goes to `masked_fill_` and doesn't wait.
"""
WHEN_FINE = """\
Outside of the training loop.

Rarely inside it: the static form costs one pass over the whole tensor, which is cheap. For a vector of values use
`masked_scatter_`, which takes them in order and doesn't wait.
"""


def match(call: Call) -> Match | None:
    """Match `aten::index_put_` over `aten::nonzero`, outside of backward."""
    if not (call.under(*INDEX_ASSIGNMENTS) and call.under("aten::nonzero")):
        return None
    return Match(
        title="x[mask] = tensor waits for the number of masked elements",
        fix="torch.where(mask, value, x) for a zero-dimensional value, x.masked_scatter_(mask, values) for a "
        "vector, or a Python number as value: x[mask] = 0.0 doesn't wait.",
        removal=Removal.KERNELS,
    )
