"""Sizes of a split are read back from the device.

## What it finds

`torch.split(x, sizes.tolist())`, `torch.tensor_split(x, indices.cpu())`, `x.split(int(n))` with sizes that were
computed on the device.

## How it shows in the trace

A copy to the host, or `aten::item`, directly before `aten::split_with_sizes`, `aten::split` or `aten::tensor_split`.

## Example

```python
sizes = torch.full((4,), 16, device=device)
result = torch.split(x, sizes.tolist())[1]
```

## Use instead

```python
sizes = [16, 16, 16, 16]  # the data loader knows them
result = torch.split(x, sizes)[1]
```

## Versions

Read in torch 2.6 and seen in traces of 2.11.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.split.html
- aten/src/ATen/native/TensorShape.cpp
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Confidence, Removal

ID = "split-sizes"
NAME = "Sizes of a split are read back"
CAUSE = Cause.SHAPE
WHY = """\
A split makes views, whose shapes the host computes: the sizes are copied there, behind all queued work.
"""
WHEN_FINE = """\
When the sizes exist on the device only.

Often the split isn't needed: scatter and segment reductions take an index of segments
(`torch.repeat_interleave(ids, sizes, output_size=n)`), and grouped products take offsets.
"""

_SPLITS = ("aten::split_with_sizes", "aten::split", "aten::tensor_split", "aten::unsafe_split_with_sizes")


def match(call: Call) -> Match | None:
    """A read-back that a split follows at once."""
    reads = call.scalar or (call.facts.direction == "DtoH" and call.leaf == "aten::copy_")
    if not (reads and call.top in ("aten::to", "aten::item") and call.after[:1] and call.after[0] in _SPLITS):
        return None
    return Match(
        title="a split waits for its sizes",
        fix="Take the sizes from the host (the collator knows them); or don't split: segment reductions and "
        "grouped products take indices and offsets on the device.",
        confidence=Confidence.MEDIUM,
        removal=Removal.NOTHING,
    )
