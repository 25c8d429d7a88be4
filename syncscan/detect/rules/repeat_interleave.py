"""`torch.repeat_interleave` with a tensor of repeats reads their sum back to the host.

## What it finds

`torch.repeat_interleave(x, repeats)` and `x.repeat_interleave(repeats)` with a device tensor as `repeats`.

## How it shows in the trace

`aten::repeat_interleave > aten::repeat_interleave > aten::item`, twice.

## Example

```python
repeats = torch.full((64,), 2, device=device)
result = torch.repeat_interleave(x, repeats, dim=0)
```

## Use instead

```python
repeats = torch.full((64,), 2, device=device)
result = torch.repeat_interleave(x, repeats, dim=0, output_size=128)
```

## Versions

`output_size` exists since about torch 1.10.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.repeat_interleave.html
- aten/src/ATen/native/Repeat.h
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "repeat-interleave"
NAME = "repeat_interleave reads its length back"
CAUSE = Cause.SHAPE
WHY = """\
The length of the result is the sum of the repeats, which the host reads back, with a check that none is negative.
"""
WHEN_FINE = """\
When the total isn't known on the host. If the repeats were made from a list, it is: `output_size=sum(durations)`. A
wrong `output_size` gives wrong results or an assert on the device.
"""


def match(call: Call) -> Match | None:
    """Match anything below `aten::repeat_interleave`."""
    if not call.under("aten::repeat_interleave"):
        return None
    return Match(
        title="repeat_interleave waits for the sum of its repeats",
        fix="Pass the total, if the host knows it: torch.repeat_interleave(x, repeats, output_size=n), or an int of "
        "repeats.",
        removal=Removal.KERNELS,
    )
