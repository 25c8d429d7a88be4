"""`torch.unique` and `unique_consecutive` read the number of distinct values back to the host.

## What it finds

`torch.unique(x)`, `torch.unique_consecutive(x)`, and both with `dim=`.

## How it shows in the trace

`aten::_unique2 > aten::item` or `aten::unique_consecutive > aten::item`; with `dim=` `aten::unique_dim` (or
`aten::unique_dim_consecutive`) with bare `cudaStreamSynchronize` calls below it.

## Example

```python
result = torch.unique(labels).numel() < 2
```

## Use instead

```python
result = labels.max() == labels.min()
```

## Versions

The length is read with `item()`, pinned since about torch 2.3.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.unique.html
- aten/src/ATen/native/cuda/UniqueCub.cu, aten/src/ATen/native/cuda/Unique.cu
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "unique"
NAME = "unique reads the number of distinct values back"
CAUSE = Cause.SHAPE
WHY = """\
The result has one element per distinct value; the host waits for the device to count them.

With `dim=` several Thrust algorithms run, and each of them waits; torch's own sync debug mode doesn't see those.
"""
WHEN_FINE = """\
Once, before the training loop, or when the values themselves are needed on the host.

Or on the CPU, in the data loader. Counts of known classes: `scatter_add_` or `bincount`'s replacement. Number of
different values with a static shape: sort, compare neighbors, sum the flags.
"""

_FORMS = {
    "aten::_unique2": "torch.unique",
    "aten::_unique": "torch.unique",
    "aten::unique_consecutive": "torch.unique_consecutive",
    "aten::unique_dim": "torch.unique(dim=…)",
    "aten::unique_dim_consecutive": "torch.unique_consecutive(dim=…)",
}


def match(call: Call) -> Match | None:
    """Match anything below one of the unique ops."""
    form = _FORMS.get(call.first(*_FORMS))
    if form is None:
        return None
    return Match(
        title=f"{form} waits for the number of distinct values",
        fix="Keep the size static: sort and compare neighbors ((s[1:] != s[:-1]).sum() + 1 counts them), "
        "scatter_add_ into a vector of known classes, or do it on the CPU while loading the data.",
        removal=Removal.KERNELS,
    )
