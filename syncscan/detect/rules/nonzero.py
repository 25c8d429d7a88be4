"""`torch.nonzero` and similar functions read the number of matches back to the host.

## What it finds

`torch.nonzero(x)`, `x.nonzero(as_tuple=True)`, `torch.where(condition)` with one argument, and `torch.argwhere`.

## How it shows in the trace

`aten::nonzero` (inside `aten::nonzero_numpy`, `aten::where` or `aten::argwhere`) with a `cudaMemcpyAsync` of eight
bytes to the host and a `cudaStreamSynchronize` directly below it; on ROCm one `hipMemcpyWithStream`.

## Example

```python
hits = torch.nonzero(x > 0)
result = x[hits[:, 0], hits[:, 1]].sum()
```

## Use instead

```python
result = torch.where(x > 0, x, 0).sum()
```

## Versions

The count is copied into pinned memory since about torch 2.5; before, the wait shows in `cudaMemcpyAsync`.
`nonzero_static` works on CUDA since about torch 2.6.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.nonzero.html
- aten/src/ATen/native/cuda/Nonzero.cu
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "nonzero"
NAME = "nonzero reads the number of matches back"
CAUSE = Cause.SHAPE
WHY = """\
The result has one row per match, and the host has to allocate it: it waits until the device has counted them,
and so for all queued work.
"""
WHEN_FINE = """\
When the number of matches decides what the host does next, or rarely (once per epoch).

If a bound N on the number of matches is known, `torch.nonzero_static(x, size=N, fill_value=-1)` gives a result of fixed
length; the padded rows need masking.
"""

_FORMS = {
    "aten::where": "torch.where(condition)",
    "aten::argwhere": "torch.argwhere",
    "aten::nonzero_numpy": "nonzero(as_tuple=True)",
    "aten::nonzero": "torch.nonzero",
}


def match(call: Call) -> Match | None:
    """Match any `aten::nonzero` without a more specific rule."""
    if not call.under("aten::nonzero"):
        return None
    form = _FORMS[call.first(*_FORMS)]
    return Match(
        title=f"{form} waits for the number of matches",
        fix="Stay masked: torch.where(condition, a, b) with three arguments, or multiply by the mask and reduce. "
        "With a known bound N use torch.nonzero_static(x, size=N) and mask the padded rows.",
        removal=Removal.KERNELS,
    )
