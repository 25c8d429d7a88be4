"""An index on the host, or a table that a device tensor indexes, is copied to the device at every use.

## What it finds

`x[[0, 1]]`, `x[numpy_index]`, `x[cpu_tensor]`, reading and assigning; and `torch.from_numpy(table).to(device)[t]`,
where the index is on the device and the table isn't.

## How it shows in the trace

`aten::index` or `aten::index_put_ > aten::to > aten::_to_copy > aten::copy_` with a small `Memcpy HtoD (Pageable ->
Device)`. Or the copy comes right before `aten::index`: then the line's source tells the index from the table.

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
from syncscan.detect.op_names import INDEXINGS
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Confidence, Removal
from syncscan.model.race import RaceKind

ID = "cpu-index"
NAME = "An index or the indexed tensor is copied to the device"
CAUSE = Cause.PAGEABLE
RACE = RaceKind.WRITE_BEFORE_COPY
WHY = """\
A list, NumPy array or CPU tensor lies in pageable memory, as index and as what is indexed: its copy to the device waits
for all work queued before.
"""
WHEN_FINE = """\
Outside of the loop.

When the index changes in every step and comes from the host: send it with `pin_memory()` and `non_blocking=True`.
"""

_BETWEEN = (
    "aten::lift_fresh",
    "aten::to",
    "aten::empty",
    "aten::unsqueeze",
    "aten::select",
    "aten::slice",
)


_INDEX = (
    "Keep the index as a device tensor, made once; use slices for ranges. If it comes from the host in each step: "
    "pin_memory() and to(device, non_blocking=True), unchanged until the copy has run."
)
_TABLE = (
    "Copy the table to the device once, before the loop, and keep it there (a module's register_buffer, or an "
    "attribute that is made on the device): then table[t] copies nothing."
)
_ON_THE_HOST = Match(
    title="an index on the host is copied to the device synchronously", fix=_INDEX, removal=Removal.PINNED_COPY
)
_COPIED = Match(
    title="a table on the host is copied to the device to be indexed there synchronously",
    fix=_TABLE,
    removal=Removal.PINNED_COPY,
)
_EITHER = Match(
    title="a host array is copied to the device around an index synchronously",
    fix=f"If it is what is indexed, as in torch.from_numpy(table).to(device)[t]: {_TABLE[0].lower()}{_TABLE[1:]} "
    f"If it is the index: {_INDEX[0].lower()}{_INDEX[1:]}",
    removal=Removal.PINNED_COPY,
    confidence=Confidence.MEDIUM,
    copied=_COPIED,
)


def match(call: Call) -> Match | None:
    """Match a copy to the device inside an indexing op, or one that an indexing op follows at once."""
    if call.facts.direction != "HtoD":
        return None
    if call.under(*INDEXINGS):
        return _ON_THE_HOST
    if not _follows(call):
        return None
    directly = call.after[0] in INDEXINGS  # a list as an index is lifted first
    if call.called("to", "cuda"):
        return _COPIED if directly else None
    return _EITHER if directly and not call.profiled else _ON_THE_HOST


def _follows(call: Call) -> bool:
    """Return whether an indexing op comes next, which after a constructor indexes its detached result."""
    return call.top == "aten::to" and call.nearest_after(_is_not_between, 8) in INDEXINGS


def _is_not_between(op: str) -> bool:
    return op not in _BETWEEN
