"""`torch.histc` without a range reads the smallest and the largest value back to the host.

## What it finds

`torch.histc(x, bins)` with `min` and `max` left at 0.

## How it shows in the trace

`aten::histc > aten::to > aten::_to_copy > aten::copy_` to pageable memory, twice.

## Example

```python
low, high = -8.0, 8.0
result = torch.histc(x.clamp(low, high), bins=16)
result = result.sum()
```

## Use instead

```python
low, high = -8.0, 8.0
result = torch.histc(x.clamp(low, high), bins=16, min=low, max=high)
result = result.sum()
```

## Versions

Checked in the source of torch 2.6 and in traces of 2.11.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.histc.html
- aten/src/ATen/native/cuda/SummaryOps.cu
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "histc"
NAME = "histc reads its range back"
CAUSE = Cause.SHAPE
WHY = """\
Without `min` and `max`, the range is taken from the data, and both ends are copied to the host before the kernel can
be launched.
"""
WHEN_FINE = """\
When the range isn't known and the histogram is drawn rarely.

Values outside the given range are ignored: clamp first.
"""


def match(call: Call) -> Match | None:
    """Match anything below `aten::histc` or `aten::histogram`."""
    if not call.under("aten::histc", "aten::histogram"):
        return None
    return Match(
        title="histc waits for the smallest and largest value",
        fix="Give the range: torch.histc(x, bins, min=low, max=high); clamp x first if values outside must be counted.",
        removal=Removal.KERNELS,
    )
