"""`x[mask] = tensor` reads the number of masked elements back to the host.

## What it finds

Assigning a device tensor through a boolean mask: `x[mask] = values`, `x[mask] = zero_dim_tensor`, `index_put_` with
masks.

## Why it stalls

The mask is turned into indices with `nonzero`, whose length the host waits for. A Python number in place of the
tensor goes to `masked_fill_` and doesn't wait.

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

## When it is fine

Rarely; the static form costs a pass over the whole tensor, which is cheap. For a vector of values use
`masked_scatter_`, which takes them in order and doesn't wait.

## Versions

Read in torch 2.6 and seen in traces of 2.11.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.Tensor.masked_scatter_.html
- aten/src/ATen/native/TensorAdvancedIndexing.cpp (canDispatchToMaskedFill)
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.model.finding import Cause, Diagnosis, Removal

ID = "boolean-assign"
NAME = "Assignment through a mask reads its length back"
CAUSE = Cause.SHAPE

_ASSIGN = ("aten::index_put_", "aten::_index_put_impl_", "aten::index_put")


def match(call: Call) -> Diagnosis | None:
    """`aten::index_put_` over `aten::nonzero`, outside of a backward pass."""
    if not (call.under(*_ASSIGN) and call.under("aten::nonzero")):
        return None
    return Diagnosis(
        ID,
        NAME,
        CAUSE,
        title="x[mask] = tensor waits for the number of masked elements",
        why="Assigning a tensor through a boolean mask turns the mask into indices, and the host waits for their "
        "number.",
        fix="torch.where(mask, value, x) for a zero-dimensional value, x.masked_scatter_(mask, values) for a vector, "
        "or a "
        "Python number as value: x[mask] = 0.0 doesn't wait.",
        when_fine="Outside of the training loop.",
        removal=Removal.KERNELS,
    )
