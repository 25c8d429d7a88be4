"""A tensor on the device is used as a Python index or slice bound.

## What it finds

`x[:n]`, `x[i:]`, `x[i]` and `x[flag]` with a zero-dimensional device tensor, whether `x` is on the device or, as a
schedule's table, on the host.

## How it shows in the trace

`aten::item` directly before `aten::slice` or `aten::select`; without stacks not after another `aten::select`, which is
how `t[k].item()` shows.

## Example

```python
i = labels.argmax()
result = x[i].sum()
```

## Use instead

```python
i = labels.argmax()
result = x.index_select(0, i.view(1)).sum()
```

## Versions

Checked in the source of torch 2.6 and in traces of 2.11.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.index_select.html
- torch/csrc/autograd/python_variable_indexing.cpp
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.op_names import converts_to_a_number
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Confidence, Removal, Use

ID = "tensor-index"
NAME = "A tensor is used as an index"
CAUSE = Cause.READBACK
WHY = """\
The host computes the shape and offset of a view, so the index or bound is read back from the device.
"""
WHEN_FINE = """\
When the length of the slice really varies.

`index_select` and `gather` copy and aren't views: an in-place write to the result doesn't reach `x`. For `x[:n]`
compare `torch.arange` with `n` and mask.
"""

_VIEWS = {
    "aten::slice": "the bound of x[:n]",
    "aten::select": "the index of x[i]",
    "aten::narrow": "the bound of narrow",
    "aten::index": "the flag of x[flag]",
}

_INDEX_OF_FLAG = ("aten::zeros", "aten::empty", "aten::ones")
"""The index that `x[flag]` makes of its flag, of length one or zero."""

_AT_ONCE_NS = 10_000
"""A view begins 1.6 to 6.9 µs after the read of its bound; a slice of the next statement came after 11.1 µs.

(H200, torch 2.11, the zoo of ops without stacks; benchmarks/detect_thresholds.py.)
"""


def match(call: Call) -> Match | None:
    """Match a scalar read that a view follows, not by a call of `item()`."""
    first, second = (*call.after[:2], "", "")[:2]
    flagged = first in _INDEX_OF_FLAG and second == "aten::index"
    view = _VIEWS.get(second if flagged else first, "")
    named = not (call.profiled or call.dry) and call.before[-1:] == (
        "aten::select",
    )  # t[k].item(), and then whatever follows
    if not (view and converts_to_a_number(call) and not named and call.followed_within(_AT_ONCE_NS)):
        return None
    return Match(
        title=f"a number is read back{'' if call.profiled else ', most likely'} as {view}",
        fix="If x is a table on the host, put it on the device, once, before the loop. There: "
        "x.index_select(0, i.view(1)) or torch.gather for an index (a copy, not a view); for x[:n] mask with "
        "torch.arange(len(x), device=x.device) < n.",
        confidence=Confidence.HIGH if call.profiled else Confidence.MEDIUM,
        use=Use.STEERS,
        removal=Removal.NOTHING,
    )
