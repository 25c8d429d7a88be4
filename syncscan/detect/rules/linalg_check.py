"""A linear algebra op reads its error flags back to raise when a matrix is singular, or its solver waits internally.

## What it finds

`torch.linalg.inv`, `solve`, `cholesky`, `lu_factor`, `eigh`, `svd`, `pinv`, `matrix_rank`, `lstsq`, `eig`,
`ldl_factor`, and the old names `torch.inverse`, `torch.cholesky`.

## How it shows in the trace

`aten::linalg_inv > … > aten::_linalg_check_errors > aten::item`; `svd` and `eigh` copy a convergence flag besides,
directly below `aten::_linalg_svd` or `aten::_linalg_eigh`. The calls of a cuSOLVER or MAGMA solver itself are
directly below its op: 28 synchronizes and copies below `aten::linalg_eig` of a 5 x 5 matrix, three below
`aten::linalg_lu_factor_ex`, with `cudaMalloc` and `cudaFree`.

## Example

```python
spd = x @ x.T + 64 * torch.eye(64, device=device)
result = torch.linalg.inv(spd)
```

## Use instead

```python
spd = x @ x.T + 64 * torch.eye(64, device=device)
result, info = torch.linalg.inv_ex(spd)  # read info later, every N steps
```

## Versions

`inv_ex` and `cholesky_ex` since torch 1.9, the others later. The solvers' calls were recorded with torch 2.11 on an
H200.

## References

- https://docs.pytorch.org/docs/stable/generated/torch.linalg.inv_ex.html
- aten/src/ATen/native/BatchLinearAlgebra.cpp (_linalg_check_errors)
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "linalg-check"
NAME = "Linear algebra reads its error flags back or waits in its solver"
CAUSE = Cause.CHECK
WHY = """\
The factorization leaves an error flag for each matrix on the device: the host reads them back, behind all queued work,
to raise an error if a matrix is singular or doesn't converge. Solvers that run partly on the host wait by themselves.
"""
WHEN_FINE = """\
When the program must stop at the first bad matrix, or when it runs rarely.

`inv_ex`, `cholesky_ex`, `solve_ex`, `lu_factor_ex` and `ldl_factor_ex` don't check: a singular matrix passes silently
unless you read `info` at some point. `svd`, `eigh` and `lstsq` have no such variant. `det`, `slogdet`, `lu` and
`qr` read nothing; `lu` of small matrices still waits in its solver.
"""

_VARIANTS = {
    "inv": "inv_ex",
    "inverse": "inv_ex",
    "cholesky": "cholesky_ex",
    "solve": "solve_ex",
    "lu_factor": "lu_factor_ex",
    "ldl_factor": "ldl_factor_ex",
}
_OLD = frozenset(
    f"aten::{op}"
    for op in "inverse cholesky cholesky_inverse cholesky_solve symeig lstsq svd pinverse matrix_rank _symeig_helper "
    "_svd_helper geqrf triangular_solve lu_solve _lu_with_info logdet solve ormqr".split()
)
"""Names from before torch.linalg."""
_NO_VARIANT = (
    "This op has no variant without the check: run it rarely, batch the matrices into one call, or use a "
    "factorization that has one (cholesky_ex, lu_factor_ex, inv_ex)."
)


_OF_SOLVER = (
    "No option avoids this: run it rarely, batch the matrices into one call, or try the other library "
    "(torch.backends.cuda.preferred_linalg_library)."
)
_READS = frozenset({"aten::copy_", "aten::_local_scalar_dense", "aten::item"})


def match(call: Call) -> Match | None:
    """Match any wait inside an op of torch.linalg, except those that need a size."""
    op = next((op for op in call.ops if op.startswith(("aten::linalg_", "aten::_linalg_")) or op in _OLD), "")
    if not op or call.under("aten::linalg_matrix_exp"):
        return None
    own = call.op if op == "aten::_linalg_check_errors" else op  # one that is composed of others has no op of its own
    name = own.removeprefix("aten::").removeprefix("_").removeprefix("linalg_")
    if call.leaf not in _READS:
        return Match(title=f"linalg.{name} waits in its solver", fix=_OF_SOLVER, removal=Removal.KERNELS)
    return Match(
        title=f"linalg.{name} waits for its error flag",
        fix=_fix(_VARIANTS[name]) if name in _VARIANTS else _NO_VARIANT,
        removal=Removal.KERNELS,
    )


def _fix(variant: str) -> str:
    return (
        f"torch.linalg.{variant}(…) doesn't check: it also returns info. Check info.any() now and then with a "
        f"non-blocking copy, since nothing else does."
    )
