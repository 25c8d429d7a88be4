"""Sparse tensors check their invariants on the host.

## What it finds

`torch.sparse.check_sparse_tensor_invariants`, `torch.sparse_coo_tensor(…, check_invariants=True)`, constructors
without a size.

## How it shows in the trace

`aten::_validate_sparse_coo_tensor_args`, `aten::_validate_compressed_sparse_indices` and similar ops over `aten::item`.

## Example

```python
indices = torch.stack([labels, labels])
result = torch.sparse_coo_tensor(indices, x[0], (8, 8), check_invariants=True).to_dense()
```

## Use instead

```python
indices = torch.stack([labels, labels])
result = torch.sparse_coo_tensor(indices, x[0], (8, 8), check_invariants=False).to_dense()
```

## Versions

Checks are off by default since torch 2.0.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.sparse.check_sparse_tensor_invariants.html
- aten/src/ATen/native/sparse/SparseTensor.cpp
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.op_names import COALESCES
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "sparse-invariants"
NAME = "Sparse invariants are checked on the host"
CAUSE = Cause.CHECK
WHY = """\
Range and order of the indices are checked on the device, and the results are read back.
"""
WHEN_FINE = """\
In tests.

Pass the size: without it, the constructor reads the largest index.
"""

_CONSTRUCTORS = ("aten::sparse_coo_tensor", "aten::sparse_csr_tensor", "aten::sparse_compressed_tensor")


def match(call: Call) -> Match | None:
    """Match a validation op of sparse tensors, or a constructor that looks for its size."""
    op = next((op for op in call.ops if "_validate_" in op and ("sparse" in op or "compressed" in op)), "")
    op = op or call.first(*_CONSTRUCTORS)
    if not op or call.under(*COALESCES):
        return None
    return Match(
        title="a sparse tensor waits to check its indices",
        fix="Give the size, and turn the checks off once the data is right: check_invariants=False, "
        "torch.sparse.check_sparse_tensor_invariants.disable().",
        removal=Removal.NOTHING,
    )
