"""Sizes of a split, or of an all-to-all, are read back from the device.

## What it finds

`torch.split(x, sizes.tolist())`, `torch.tensor_split(x, indices.cpu())`, `x.split(int(n))` with sizes that were
computed on the device; the numbers of tokens per rank that a mixture of experts passes to `all_to_all_single`.

## How it shows in the trace

A copy to the host, or `aten::item`, directly before `aten::split_with_sizes`, `aten::split` or `aten::tensor_split`;
a small one that an all-to-all follows within some ops.

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

Checked in the source of torch 2.6 and in traces of 2.11.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.split.html
- aten/src/ATen/native/TensorShape.cpp
- https://github.com/pytorch/torchtitan/issues/1968, on an all-to-all that needs no sizes on the host
- torch.ops.symm_mem.all_to_all_vdev, all_to_all_vdev_2d (torch/distributed/_symmetric_memory)
"""

from __future__ import annotations

import re

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Confidence, Removal

ID = "split-sizes"
NAME = "Sizes of a split are read back"
CAUSE = Cause.SHAPE
WHY = """\
A split creates views, and the host computes their shapes: the sizes are copied to the host, behind all queued work.
"""
WHEN_FINE = """\
When the sizes exist on the device only.

Often the split isn't needed: scatter and segment reductions take an index of segments
(`torch.repeat_interleave(ids, sizes, output_size=n)`), and grouped products take offsets.
"""

_ALL_TO_ALL = re.compile(r"all_?to_?all", re.IGNORECASE)
_SPLITS = ("aten::split_with_sizes", "aten::split", "aten::tensor_split", "aten::unsafe_split_with_sizes")


_SOON = 12
"""Ops and calls that may come between: the counts are read, tokens are put into the order of their ranks."""
_SMALL = 1 << 14
"""Bytes of the counts of some hundred experts at most."""


def is_all_to_all(name: str) -> bool:
    """Return whether an op exchanges parts of a tensor between all ranks: `c10d::alltoall_base_`, `nccl:all_to_all`."""
    return _ALL_TO_ALL.search(name) is not None


def match(call: Call) -> Match | None:
    """Match a read-back that a split follows at once, or soon an all-to-all."""
    reads = call.scalar or (call.facts.direction == "DtoH" and call.leaf == "aten::copy_")
    if not (reads and call.top in ("aten::to", "aten::item")):
        return None
    if not (call.after[:1] and call.after[0] in _SPLITS):
        return _exchange(call)
    return Match(
        title="a split waits for its sizes",
        fix="Take the sizes from the host (the collator knows them); or don't split: segment reductions and "
        "grouped products take indices and offsets on the device.",
        confidence=Confidence.MEDIUM,
        removal=Removal.NOTHING,
    )


def _exchange(call: Call) -> Match | None:
    """Return the sizes of a mixture of experts' exchange, or of another."""
    if not any(map(is_all_to_all, call.after[:_SOON])) or not call.copies_at_most(_SMALL):
        return None
    return Match(
        title="an all-to-all waits for the sizes of its parts",
        fix="Exchange by sizes that stay on the device: torch.ops.symm_mem.all_to_all_vdev, for experts "
        "all_to_all_vdev_2d, DeepEP; grouped products take offsets. Or pad each expert's tokens to a fixed capacity: "
        "equal parts need no sizes.",
        confidence=Confidence.MEDIUM,
        removal=Removal.NOTHING,
    )
