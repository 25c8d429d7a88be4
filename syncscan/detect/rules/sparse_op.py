"""Conversions and products of sparse tensors read sizes back to the host.

## What it finds

`to_sparse`, `to_sparse_csr`, batched products (`bmm`) of COO tensors, and their `index_select`, softmax and sums. On
torch 2.11 `torch.sparse.mm`, `to_dense` and additions of coalesced tensors didn't wait (measured).

## How it shows in the trace

`aten::to_sparse > aten::_to_sparse > aten::nonzero`; `aten::bmm` over `cudaDeviceSynchronize` and `cudaMemcpy`; other
ops with `sparse` or `csr` in their name over `aten::item` or a bare `cudaStreamSynchronize`.

## Example

```python
sparse = x.relu().to_sparse()
result = torch.sparse.mm(sparse, x)
```

## Use instead

```python
result = x.relu() @ x
```

## Versions

Checked in the source of torch 2.6, and measured on 2.11.

## References

- https://docs.pytorch.org/docs/stable/sparse.html
- aten/src/ATen/native/sparse/cuda/SparseCUDATensorMath.cu, aten/src/ATen/native/TensorConversions.cpp
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "sparse-op"
NAME = "A sparse op reads its sizes back"
CAUSE = Cause.SHAPE
WHY = """\
The number of stored elements is known only on the device and decides the shapes, so the host reads it back.

Batched products of COO tensors synchronize the whole device and copy with `cudaMemcpy`.
"""
WHEN_FINE = """\
When the data is very sparse and the op runs rarely.

Convert once, before the loop, and keep the CSR form.
"""

_PARTS = ("sparse", "csr", "csc", "_nnz", "indices_copy")


def match(call: Call) -> Match | None:
    """Match an op with sparse in its name, or one that waits only for sparse tensors."""
    name = call.op_with(*_PARTS)
    name = name or (call.first("aten::index_select") if call.scalar else call.first("aten::bmm", "aten::bmm_out"))
    if not name:
        return None
    op = name.removeprefix("aten::")
    return Match(
        title=f"{op} waits for the sizes of a sparse tensor",
        fix="Convert once, before the loop, and keep the CSR form; or stay dense with a mask where the data isn't "
        "very sparse.",
        removal=Removal.KERNELS,
    )
