"""Check what a program promises so that torch needn't read it: a GPU believes it, and returns wrong values.

`repeat_interleave(output_size=)` isn't among these: torch's kernel checks it, on a CPU and on a GPU. Nor is
`nonzero_static`, which cuts off or fills up to its size, or an index out of range, which a GPU's kernel asserts.

Source: measured with torch 2.11 on an H100. `segment_reduce` with lengths that add up to 9 for 6 rows returned values
of other memory; a sparse tensor with `is_coalesced=True` and one index twice kept both values apart.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

torch: Any = importlib.import_module("torch")
Check = Callable[[Any, Any], str]
"""Takes an op's arguments, by position and by name; returns what is wrong with a promise among them, or ''."""


def _segment_lengths(args: Any, kwargs: Any) -> str:
    lengths, axis = kwargs.get("lengths"), kwargs.get("axis", 0)
    if lengths is None or not kwargs.get("unsafe", False):
        return ""
    rows = args[0].shape[axis]
    if bool((lengths >= 0).all() and (lengths.sum(-1) == rows).all()):
        return ""
    return (
        f"segment_reduce: the lengths don't add up to the {rows} rows, and unsafe=True skips the check. On a GPU the "
        "call returns values of other memory, or without some rows."
    )


def _coalesced(args: Any, kwargs: Any) -> str:
    indices, sizes = args[3], args[2]
    if not kwargs.get("is_coalesced") or indices.shape[1] < 2:
        return ""
    place = torch.zeros_like(indices[0])
    for row, size in zip(indices, sizes, strict=False):
        place = place * size + row
    if bool((place[1:] > place[:-1]).all()):
        return ""
    return (
        "sparse_coo_tensor: is_coalesced=True, but an index comes twice or out of order. On a GPU coalesce() then "
        "leaves values of one place apart, and what relies on it is wrong."
    )


CHECKS: dict[str, Check] = {
    "aten::segment_reduce": _segment_lengths,
    "aten::_sparse_coo_tensor_with_dims_and_tensors": _coalesced,
}
"""Op → the check of what it is promised."""
