"""Track the simulated memory of tensors: the device's, pinned or pageable host memory.

The note is kept at the storage, which all views of a tensor share and torch keeps one Python object of: it is found
without a registry, and dies with the values.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

DEVICE, PINNED, HOST = "device", "pinned", None
"""Simulated memories; `HOST` is pageable memory, the default of any tensor."""

WITHOUT_STORAGE = (NotImplementedError, RuntimeError, ValueError)
"""Errors that torch raises if a tensor has no storage of its own; ValueError for the parameters of a lazy module."""
_NOTE = "_syncscan_place"


@contextlib.contextmanager
def without_modes() -> Iterator[None]:
    """See tensors as they are on the CPU, and let none of torch's modes see what is done to them."""
    torch = importlib.import_module("torch")
    with torch._C.DisableTorchFunction(), torch.utils._python_dispatch._disable_current_modes():
        yield


def place_of(tensor: Any) -> str | None:
    """Return the simulated memory of a tensor; call it with torch's modes off."""
    try:
        return getattr(tensor.untyped_storage(), _NOTE, HOST)
    except WITHOUT_STORAGE:
        inner = _with_storage(tensor)
        return HOST if inner is None else place_of(inner)


def put(tensor: Any, place: str | None) -> None:
    try:
        storage = tensor.untyped_storage()
    except WITHOUT_STORAGE:
        inner = _with_storage(tensor)
        if inner is not None:
            put(inner, place)
        return
    note(storage, place)


def of_storage(storage: Any) -> str | None:
    return getattr(storage, _NOTE, HOST)


def note(storage: Any, place: str | None) -> None:
    setattr(storage, _NOTE, place)


def same_memory(a: Any, b: Any) -> bool:
    """Return whether two tensors are the same; `torch.equal` then answers without reading the values."""
    try:
        same = a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    except (NotImplementedError, RuntimeError):
        return False
    return bool(same and a.storage_offset() == b.storage_offset() and a.stride() == b.stride() and a.shape == b.shape)


def _with_storage(tensor: Any) -> Any:
    """Return the inner tensor with a storage: a sparse tensor's values, one wrapped by `torch.func`, and so on."""
    torch = importlib.import_module("torch")
    if isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin):
        return tensor.data
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return torch._C._functorch.get_unwrapped(tensor)
    if tensor.layout == torch.sparse_coo:
        return tensor._values()
    compressed = (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
    return tensor.values() if tensor.layout in compressed else None
