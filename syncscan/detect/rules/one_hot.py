"""`F.one_hot` without `num_classes` reads the largest class back to the host.

## What it finds

`torch.nn.functional.one_hot(x)`.

## How it shows in the trace

`aten::one_hot > aten::item`.

## Example

```python
result = F.one_hot(labels)
```

## Use instead

```python
result = F.one_hot(labels, num_classes=8)
```

## Versions

With `num_classes` there is no wait on CUDA (torch 2.6 and later); on the CPU the check reads values all the same.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.one_hot.html
- aten/src/ATen/native/Onehot.cpp
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "one-hot"
NAME = "one_hot reads the number of classes back"
CAUSE = Cause.SHAPE
WHY = """\
Without `num_classes`, the number of columns is the largest class plus one, so the host reads the maximum back.
"""
WHEN_FINE = """\
When the number of classes isn't known beforehand.

With `num_classes` a class out of range is caught by an assert on the device.
"""


def match(call: Call) -> Match | None:
    """Match anything below `aten::one_hot`."""
    if not call.under("aten::one_hot"):
        return None
    return Match(
        title="one_hot waits for the largest class",
        fix="Pass it: F.one_hot(x, num_classes=n). A class out of range is then caught by an assert on the device.",
        removal=Removal.KERNELS,
    )
