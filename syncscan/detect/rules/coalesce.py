"""Coalescing a sparse tensor waits for the number of distinct indices.

## What it finds

`t.coalesce()`, and code that calls it: `SparseAdam` with `Embedding(sparse=True)`, `torch.sparse.sum`. Making the
sparse gradient itself didn't wait (torch 2.11, measured).

## How it shows in the trace

`aten::coalesce > aten::_coalesce` with several bare `cudaStreamSynchronize` calls and a copy to the host.

## Example

```python
indices = torch.stack([labels, labels])
sparse = torch.sparse_coo_tensor(indices, x[0], (8, 8))
result = sparse.coalesce().to_dense()
```

## Use instead

```python
indices = torch.stack([labels, labels])
result = torch.zeros(8, 8, device=device).index_put_((indices[0], indices[1]), x[0], accumulate=True)
```

## Versions

`is_coalesced=` exists since torch 2.1.

## References

- https://docs.pytorch.org/docs/stable/sparse.html#uncoalesced-sparse-coo-tensors
- aten/src/ATen/native/sparse/cuda/SparseCUDATensor.cu
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.op_names import COALESCES
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "coalesce"
NAME = "coalesce reads the number of entries back"
CAUSE = Cause.SHAPE
WHY = """\
Merging equal indices sorts them with Thrust, which synchronizes at the end, and reads the number of distinct ones back.

torch's sync debug mode doesn't see these waits.
"""
WHEN_FINE = """\
When the sparse tensor is much smaller than a dense one would be.

If a tensor is coalesced by construction, declare it: `torch.sparse_coo_tensor(…, is_coalesced=True)` (checked only
under sparse invariants).
"""


def match(call: Call) -> Match | None:
    """Match anything below `aten::coalesce` or `aten::_coalesce`."""
    if not call.under(*COALESCES):
        return None
    return Match(
        title="coalesce waits for the number of distinct indices",
        fix="Build it coalesced and declare it (is_coalesced=True), accumulate into a dense tensor with index_put_ or "
        "index_add_, or take dense gradients (Embedding(sparse=False)).",
        removal=Removal.KERNELS,
    )
