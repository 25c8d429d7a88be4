"""`value in tensor` reads its result back to the host.

## What it finds

`3 in t`, `t[0] in t`: `Tensor.__contains__`.

## How it shows in the trace

`aten::eq`, `aten::any`, `aten::item`, with a frame of `torch/_tensor.py: __contains__`.

## Example

```python
result = 3 in labels
```

## Use instead

```python
result = (labels == 3).any()  # a tensor: use it with torch.where, or read it later
```

## Versions

Checked in the source of torch 2.6 and in traces of 2.11.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.isin.html
- torch/_tensor.py (__contains__)
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "contains"
NAME = "Membership is tested on the host"
CAUSE = Cause.CTRL
WHY = """\
Python's `in` returns a bool: the comparison and `any` run on the device, and the host waits for their result.
"""
WHEN_FINE = """\
When the result decides what the host does next.

For many values: `torch.isin`, which doesn't wait.
"""


def match(call: Call) -> Match | None:
    """Match `Tensor.__contains__`, by its frame or by the ops it leaves."""
    compared = call.top == "aten::item" and call.before[-2:] == ("aten::eq", "aten::any") and not call.has_frames
    if not (compared or call.in_library_function("__contains__")):
        return None
    return Match(
        title="'in' waits for its result",
        fix="Keep (t == value).any() as a tensor (torch.isin for many values), and act on it with torch.where.",
        removal=Removal.NOTHING,
    )
