"""Match any wait inside an op of torch.linalg, except those that need a size."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Removal

_UNCHECKED = {op: f"{op}_ex" for op in ("inv", "cholesky", "solve", "lu_factor", "ldl_factor")} | {"inverse": "inv_ex"}
"""Variants of ops that return the flag instead of reading it."""
_OLD = frozenset(
    f"aten::{op}"
    for op in "inverse cholesky cholesky_inverse cholesky_solve symeig lstsq svd pinverse matrix_rank _symeig_helper "
    "_svd_helper geqrf triangular_solve lu_solve _lu_with_info logdet solve ormqr".split()
)
"""Names from before torch.linalg."""


_READS = frozenset({"aten::copy_", "aten::_local_scalar_dense", "aten::item"})


def match(call: Call) -> Match | None:
    op = next((op for op in call.ops if op.startswith(("aten::linalg_", "aten::_linalg_")) or op in _OLD), "")
    if not op or call.under("aten::linalg_matrix_exp"):
        return None
    own = call.op if op == "aten::_linalg_check_errors" else op  # one that is composed of others has no op of its own
    name = own.removeprefix("aten::").removeprefix("_").removeprefix("linalg_")
    if call.leaf not in _READS:
        return Match(variant="solver", values={"name": name}, removal=Removal.KERNELS)
    unchecked = _UNCHECKED.get(name, "")
    return Match(
        variant="unchecked" if unchecked else "",
        values={"name": name, "unchecked": unchecked},
        removal=Removal.KERNELS,
    )
