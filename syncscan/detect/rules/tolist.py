"""`.tolist()` copies a tensor to the host and waits.

## What it finds

`t.tolist()`, iteration that ends in Python numbers, `torch.split(x, sizes.tolist())`.

## How it shows in the trace

`aten::to > aten::_to_copy > aten::copy_` to pageable memory, after `aten::resolve_conj` and `aten::resolve_neg`; a C
frame `tolist`.

## Example

```python
result = sum(labels.tolist())
```

## Use instead

```python
result = labels.sum().item()
```

## Versions

Checked in the source of torch 2.6 and in traces of 2.11.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.Tensor.tolist.html
- torch/csrc/utils/tensor_list.cpp
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal
from syncscan.model.race import RaceKind

ID = "tolist"
NAME = "tolist copies a tensor back"
CAUSE = Cause.READBACK
RACE = RaceKind.READ_BEFORE_COPY
WHY = """\
All elements are copied to pageable host memory, behind all work queued before.
"""
WHEN_FINE = """\
At the end of an epoch; one `tolist` is far better than a loop of `item`.

To continue meanwhile: copy into pinned memory with `non_blocking=True`, record an event, and read after
`event.synchronize()`.
"""


def match(call: Call) -> Match | None:
    """Match the copy of `tolist`, by its C frame or by the ops before it."""
    resolved = call.before[-2:] == ("aten::resolve_conj", "aten::resolve_neg") and not call.profiled
    if not (call.facts.direction != "HtoD" and call.leaf == "aten::copy_" and (resolved or call.called("tolist"))):
        return None
    return Match(
        title="tolist waits for a copy of the tensor",
        fix="Compute on the device and read one result; or read later: copy into pinned memory with "
        "non_blocking=True, then event.record(), and read after event.synchronize(), a step later.",
        removal=Removal.ASYNC_COPY,
    )
