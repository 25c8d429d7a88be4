"""Make tensors of arrays, and arrays of tensors, whose uses of the shared memory are known as one's."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from syncscan.dryrun.patches import Patches
from syncscan.dryrun.recorder import DryRunSession
from syncscan.dryrun.watched_arrays import WatchedArray, read_whole

torch: Any = importlib.import_module("torch")
_from_numpy = torch.from_numpy
TAKING = ("asarray", "asanyarray")
"""Functions of numpy's that return an array of the same memory."""


def pretend(session: DryRunSession, patches: Patches) -> None:
    """Have `torch.from_numpy` know pinned memory again, and `numpy.asarray` return arrays that are watched."""

    def from_numpy(array: Any) -> Any:
        return tensor_of(array) if isinstance(array, WatchedArray) else _from_numpy(array)

    patches.set(torch, "from_numpy", from_numpy)
    for name in TAKING:
        patches.set(np, name, taking(getattr(np, name), torch.Tensor))


def taking(original: Callable[..., Any], kind: Any) -> Callable[..., Any]:
    """Return one of the functions `TAKING` that takes tensors of a class by their `numpy`, and watched arrays as such.

    By itself it returns a plain array of the same memory, which can't be watched.
    """

    @functools.wraps(original)
    def taken(value: Any, *args: Any, **kwargs: Any) -> Any:
        array = value.numpy() if type(value) is kind and not value.is_cuda else value
        if not isinstance(array, WatchedArray):
            return original(value, *args, **kwargs)
        dtype = args[0] if args else kwargs.get("dtype")
        return (
            array if dtype is None or np.dtype(dtype) == array.dtype else original(read_whole(array), *args, **kwargs)
        )

    return taken


def tensor_of(array: WatchedArray) -> Any:
    """Return a tensor of an array's memory: of the storage that the array was made from, where it lies in there.

    `torch.from_numpy` would make a storage of its own of that memory, whose uses would be counted apart.
    """
    with torch._C.DisableTorchFunction(), torch.utils._python_dispatch._disable_current_modes():
        tensor = _from_numpy(array.view(np.ndarray))
        if array.tensor is None:
            return tensor
        storage = array.tensor.untyped_storage()
        offset = tensor.data_ptr() - storage.data_ptr()
        inside = offset >= 0 and offset + tensor.untyped_storage().nbytes() <= storage.nbytes()
        if not inside or offset % tensor.element_size():
            return tensor
        return tensor.new_empty(0).set_(storage, offset // tensor.element_size(), tensor.shape, tensor.stride())
