"""`torch.equal` brings its answer to the host.

## What it finds

`torch.equal(a, b)` and `a.equal(b)` on device tensors; DTensor's comparison.

## How it shows in the trace

`aten::equal > … > aten::item`, outside of an op that uses it as a check.

## Example

```python
result = torch.equal(x, x.clone())
```

## Use instead

```python
result = (x == x.clone()).all()  # a tensor: use it with torch.where, or read it later
```

## Versions

Read in torch 2.6 and seen in traces of 2.11.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.equal.html
- aten/src/ATen/native/cuda/Equal.cpp
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "equal"
NAME = "equal brings its answer to the host"
CAUSE = Cause.CTRL
WHY = """\
`torch.equal` gives a Python bool; the host waits until the device has compared.

It is free only when shapes differ, nothing is stored, or both are the same memory.
"""
WHEN_FINE = """\
When the answer steers what the host does next, and much device work depends on it.
"""


def match(call: Call) -> Match | None:
    """Match `aten::equal` as the program's own call."""
    if not call.under("aten::equal"):
        return None
    return Match(
        title="torch.equal waits for its answer",
        fix="Keep it on the device: (a == b).all() as a tensor in torch.where, or read every some steps.",
        removal=Removal.KERNELS,
    )
