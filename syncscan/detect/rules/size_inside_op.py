"""An op reads a size back to the host internally: combinations, segment_reduce, mode, matrix_exp.

## What it finds

`torch.combinations`, `torch.segment_reduce`, `torch.mode` of long rows, `torch.matrix_exp` of a batch.

## How it shows in the trace

`aten::combinations > aten::masked_select > aten::nonzero`, `aten::segment_reduce > aten::item`, `aten::mode` with
several bare `cudaStreamSynchronize`, `aten::linalg_matrix_exp` over `aten::nonzero` and `aten::item`.

## Example

```python
pairs = torch.combinations(x[0, :8], r=2)
result = (pairs[:, 0] - pairs[:, 1]).abs().sum()
```

## Use instead

```python
i, j = torch.triu_indices(8, 8, offset=1, device=device)
result = (x[0, i] - x[0, j]).abs().sum()
```

## Versions

`segment_reduce(unsafe=True)` skips the checks; `triu_indices` never waits.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.combinations.html
- aten/src/ATen/native/SegmentReduce.cpp, aten/src/ATen/native/cuda/TensorModeKernel.cu
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "size-inside-op"
NAME = "An op reads a size back internally"
CAUSE = Cause.SHAPE
WHY = """\
The op needs a number from the device to size its result or to choose its next kernel.
"""
WHEN_FINE = """\
When it runs rarely, or on little data.
"""

_SQUARINGS = "Keep it out of the hot path, or take a fixed number of squarings (Taylor or Padé by hand)."
_FIXES = {
    "aten::combinations": "Index with cached torch.triu_indices(n, n, offset=1, device=…): it doesn't wait.",
    "aten::segment_reduce": "Pass unsafe=True when the lengths are known to be right (the check is lost), or "
    "scatter_reduce_.",
    "aten::_segment_reduce_backward": "Use scatter_reduce_ with an index of segments.",
    "aten::mode": "Count with F.one_hot(x, n).sum(...) over a known range and take argmax.",
    "aten::linalg_matrix_exp": _SQUARINGS,
    "aten::matrix_exp": _SQUARINGS,
}


def match(call: Call) -> Match | None:
    """Match ops that read a size back themselves."""
    op = call.first(*_FIXES)
    if not op:
        return None
    name = op.removeprefix("aten::")
    return Match(
        title=f"{name} waits {'to check its lengths' if name == 'segment_reduce' else 'for a size'}",
        fix=_FIXES[op],
        removal=Removal.KERNELS,
    )
