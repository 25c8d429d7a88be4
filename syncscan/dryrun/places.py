"""From a tensor to the memory that its values are pretended to lie in: the device's, pinned or pageable host memory.

The note stands at the storage, which all views of a tensor share and torch keeps one Python object of: it is found
without a registry, and dies with the values.
"""

from __future__ import annotations

import importlib
from typing import Any

DEVICE, PINNED, HOST = "device", "pinned", None
"""`HOST` is pageable memory, which is what a tensor is in that nobody said anything of."""

_WITHOUT_STORAGE = (NotImplementedError, RuntimeError, ValueError)
"""What torch raises where a tensor has none of its own; ValueError for the parameters of a lazy module."""
_NOTE = "_syncscan_place"


def place_of(tensor: Any) -> str | None:
    """Where a tensor's values lie; call it with torch's modes off.

    Args:
        tensor: any `torch.Tensor`: sparse, nested or inside of `torch.func`'s transforms, too.
    """
    try:
        return getattr(tensor.untyped_storage(), _NOTE, HOST)
    except _WITHOUT_STORAGE:
        inner = _with_storage(tensor)
        return HOST if inner is None else place_of(inner)


def put(tensor: Any, place: str | None) -> None:
    """Note that a tensor's values, and those of all its views, lie there."""
    try:
        storage = tensor.untyped_storage()
    except _WITHOUT_STORAGE:
        inner = _with_storage(tensor)
        if inner is not None:
            put(inner, place)
        return
    note(storage, place)


def of_storage(storage: Any) -> str | None:
    """Where a `torch.UntypedStorage` lies."""
    return getattr(storage, _NOTE, HOST)


def note(storage: Any, place: str | None) -> None:
    """Note where a `torch.UntypedStorage` lies."""
    setattr(storage, _NOTE, place)


def same_memory(a: Any, b: Any) -> bool:
    """Whether two tensors are one: `torch.equal` then answers without a look at the values."""
    try:
        same = a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):
        return False
    return bool(same and a.storage_offset() == b.storage_offset() and a.stride() == b.stride() and a.shape == b.shape)


def _with_storage(tensor: Any) -> Any:
    """The tensor inside that has a storage: a sparse tensor's values, a lazy parameter, what `torch.func` wraps."""
    torch = importlib.import_module("torch")
    if isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin):
        return tensor.data
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return torch._C._functorch.get_unwrapped(tensor)
    if tensor.layout == torch.sparse_coo:
        return tensor._values()
    compressed = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
    return tensor.values() if tensor.layout in compressed else None
