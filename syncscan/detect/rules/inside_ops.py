"""Rules about ops that wait inside."""

from __future__ import annotations

import re

from syncscan.detect.call import Call
from syncscan.detect.op_names import COALESCES
from syncscan.model.finding import Confidence, Diagnosis, Removal


def nested_tensor(call: Call) -> Diagnosis | None:
    """Match an op of nested tensors around the call, or their Python code."""
    op = call.op_with("nested", "jagged", "aten::to_padded_tensor")
    jagged = "PythonSubclass" in call.ops and call.top in ("aten::unbind", "aten::split_with_sizes", "aten::chunk")
    if not (op or jagged or call.place.in_library("torch/nested")):
        return None
    what = op.removeprefix("aten::") or "a nested tensor"
    return Diagnosis(
        values={"what": what},
        removal=Removal.KERNELS,
    )


_DETECTORS = "torchvision/models/detection"
"""0.26, rpn.py, filter_proposals, and roi_heads.py, postprocess_detections: a loop over the images."""


def nms(call: Call) -> Diagnosis | None:
    """Match anything below torchvision's suppression ops."""
    op = next((op for op in call.ops if op.startswith("torchvision::") and "nms" in op), "")
    batched = call.point.direction == "HtoD" and any(
        n.startswith("torchvision::") and "nms" in n for n in call.after[:6]
    )
    if not (op or batched or call.place.in_library("torchvision/ops/boxes.py")):
        return None
    return Diagnosis(
        variant="detector" if call.place.in_library(_DETECTORS) else "",
        for_caller=True,
        removal=Removal.KERNELS,
    )


def packed_sequence(call: Call) -> Diagnosis | None:
    """Match a read-back inside torch's packing code, or directly before the packing op."""
    packs = (
        call.point.direction != "HtoD" and call.top == "aten::to" and "aten::_pack_padded_sequence" in call.after[:6]
    )
    if not (packs or call.place.in_library("torch/nn/utils/rnn.py") or call.under("aten::_pack_padded_sequence")):
        return None
    return Diagnosis()


_ALL_TO_ALL = re.compile(r"all_?to_?all", re.IGNORECASE)
"""Ops that exchange parts of a tensor between all ranks: `c10d::alltoall_base_`, `nccl:all_to_all`."""
_SPLITS = ("aten::split_with_sizes", "aten::split", "aten::tensor_split", "aten::unsafe_split_with_sizes")


_SOON = 12
"""Ops and calls that may come between: the counts are read, tokens are put into the order of their ranks."""
_SMALL = 1 << 14
"""Bytes of the counts of some hundred experts at most."""


def split_sizes(call: Call) -> Diagnosis | None:
    """Match a read-back that a split follows at once, or soon an all-to-all."""
    reads = call.scalar or (call.point.direction == "DtoH" and call.leaf == "aten::copy_")
    if not (reads and call.top in ("aten::to", "aten::item")):
        return None
    if not (call.after[:1] and call.after[0] in _SPLITS):
        return _exchange(call)
    return Diagnosis(confidence=Confidence.MEDIUM)


def _exchange(call: Call) -> Diagnosis | None:
    """Return the sizes of a mixture of experts' exchange, or of another."""
    if not any(map(_ALL_TO_ALL.search, call.after[:_SOON])) or not call.copies_at_most(_SMALL):
        return None
    return Diagnosis(variant="exchange", confidence=Confidence.MEDIUM)


_OPS = (
    "aten::corrcoef",
    "aten::cov",
    "aten::istft",
    "aten::normal",
    "aten::normal_",
    "aten::multinomial",
    "aten::poisson",
    "aten::embedding_renorm_",
    "aten::_assert_scalar",
    "aten::cudnn_is_acceptable",
    "aten::_cudnn_init_dropout_state",
)


_FUNCTIONS = ("gaussian_nll_loss",)
"""Functions of torch.nn.functional that ask in Python."""


def argument_check(call: Call) -> Diagnosis | None:
    """Match ops that check their arguments on the host, or a function of torch's that does."""
    name = call.first(*_OPS) or next((f for f in _FUNCTIONS if call.scalar and call.place.in_library_function(f)), "")
    if not name:
        return None
    op = name.removeprefix("aten::")
    return Diagnosis(variant=op, values={"op": op})


_UNCHECKED = {op: f"{op}_ex" for op in ("inv", "cholesky", "solve", "lu_factor", "ldl_factor")} | {"inverse": "inv_ex"}
"""Variants of ops that return the flag instead of reading it."""
_OLD = frozenset(
    f"aten::{op}"
    for op in "inverse cholesky cholesky_inverse cholesky_solve symeig lstsq svd pinverse matrix_rank _symeig_helper "
    "_svd_helper geqrf triangular_solve lu_solve _lu_with_info logdet solve ormqr".split()
)
"""Names from before torch.linalg."""


_READS = frozenset({"aten::copy_", "aten::_local_scalar_dense", "aten::item"})


def linalg_check(call: Call) -> Diagnosis | None:
    """Match any wait inside an op of torch.linalg, except those that need a size."""
    op = next((op for op in call.ops if op.startswith(("aten::linalg_", "aten::_linalg_")) or op in _OLD), "")
    if not op or call.under("aten::linalg_matrix_exp"):
        return None
    own = call.op if op == "aten::_linalg_check_errors" else op  # one that is composed of others has no op of its own
    name = own.removeprefix("aten::").removeprefix("_").removeprefix("linalg_")
    if call.leaf not in _READS:
        return Diagnosis(variant="solver", values={"name": name}, removal=Removal.KERNELS)
    unchecked = _UNCHECKED.get(name, "")
    return Diagnosis(
        variant="unchecked" if unchecked else "",
        values={"name": name, "unchecked": unchecked},
        removal=Removal.KERNELS,
    )


_CONSTRUCTORS = ("aten::sparse_coo_tensor", "aten::sparse_csr_tensor", "aten::sparse_compressed_tensor")


def sparse_invariants(call: Call) -> Diagnosis | None:
    """Match a validation op of sparse tensors, or a constructor that looks for its size."""
    op = next((op for op in call.ops if "_validate_" in op and ("sparse" in op or "compressed" in op)), "")
    op = op or call.first(*_CONSTRUCTORS)
    if not op or call.under(*COALESCES):
        return None
    return Diagnosis()


_PARTS = ("sparse", "csr", "csc", "_nnz", "indices_copy")


def sparse_op(call: Call) -> Diagnosis | None:
    """Match an op with sparse in its name, or one that waits only for sparse tensors."""
    name = call.op_with(*_PARTS)
    name = name or (call.first("aten::index_select") if call.scalar else call.first("aten::bmm", "aten::bmm_out"))
    if not name:
        return None
    op = name.removeprefix("aten::")
    return Diagnosis(
        values={"op": op},
        removal=Removal.KERNELS,
    )
