"""An index on the host is copied to the device at every use.

## What it finds

`x[[0, 1]]`, `x[numpy_index]`, `x[cpu_tensor]`, reading and assigning.

## How it shows in the trace

`aten::index` or `aten::index_put_ > aten::to > aten::_to_copy > aten::copy_` with a small `Memcpy HtoD (Pageable ->
Device)`.

## Example

```python
result = x[[0, 2, 4]].sum()
```

## Use instead

```python
rows = torch.arange(0, 6, 2, device=device)  # made once, or a slice: x[0:6:2]
result = x[rows].sum()
```

## Versions

A boolean mask on the host is turned into indices there; sent without a wait since about torch 2.9.

## References

- https://docs.pytorch.org/docs/stable/tensor_view.html
- aten/src/ATen/native/TensorAdvancedIndexingUtils.h
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.ops import INDEXINGS
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "cpu-index"
NAME = "An index is copied to the device"
CAUSE = Cause.PAGEABLE
WHY = """\
A list, NumPy array or CPU tensor as index lies in pageable memory: its copy to the device waits for all work queued
before.
"""
WHEN_FINE = """\
Outside of the loop.

When the index changes in every step and comes from the host: send it with `pin_memory()` and `non_blocking=True`.
"""

_BETWEEN = (
    "aten::lift_fresh",
    "aten::detach_",
    "aten::to",
    "aten::empty",
    "aten::unsqueeze",
    "aten::select",
    "aten::slice",
)


def match(call: Call) -> Match | None:
    """A copy to the device inside an indexing op, or one that an indexing op follows at once."""
    if call.facts.direction != "HtoD" or not (call.under(*INDEXINGS) or _follows(call)):
        return None
    return Match(
        title="an index on the host is copied to the device, with a wait",
        fix="Keep the index as a device tensor, made once; use slices for ranges. If it comes from the host in "
        "each step: pin_memory() and to(device, non_blocking=True), unchanged until the copy has run.",
        removal=Removal.PINNED_COPY,
    )


def _follows(call: Call) -> bool:
    """Whether an indexing op comes next."""
    return call.top == "aten::to" and call.nearest_after(_is_not_between, 8) in INDEXINGS


def _is_not_between(op: str) -> bool:
    return op not in _BETWEEN
