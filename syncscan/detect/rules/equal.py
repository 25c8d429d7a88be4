"""`torch.equal` reads its result back to the host.

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

Checked in the source of torch 2.6 and in traces of 2.11.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.equal.html
- aten/src/ATen/native/cuda/Equal.cpp
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "equal"
NAME = "equal reads its result back"
CAUSE = Cause.CTRL
WHY = """\
`torch.equal` returns a Python bool; the host waits until the comparison has run.

There is no wait only if shapes differ, the tensors are empty, or both share the same memory.
"""
WHEN_FINE = """\
When the result decides what the host does next, and much device work depends on it.
"""


def match(call: Call) -> Match | None:
    """Match `aten::equal` as the program's own call."""
    if not call.under("aten::equal"):
        return None
    return Match(
        title="torch.equal waits for its result",
        fix="Keep it on the device: (a == b).all() as a tensor in torch.where, or read every N steps.",
        removal=Removal.KERNELS,
    )
