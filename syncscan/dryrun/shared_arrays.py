"""Make tensors of arrays, and arrays of tensors, whose uses of the shared memory are known as one's."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from syncscan.dryrun.patches import Patches
from syncscan.dryrun.recorder import DryRunSession
from syncscan.dryrun.watched_arrays import WatchedArray

torch: Any = importlib.import_module("torch")
_from_numpy = torch.from_numpy
TAKING = ("asarray", "asanyarray", "ascontiguousarray", "array")
"""Functions of numpy's that return an array of the same memory where they can, or read it all."""
_SAVING = ("save", "savez", "savez_compressed")


def pretend(session: DryRunSession, patches: Patches) -> None:
    """Have torch know pinned memory again that it gets as an array, and numpy's arrays of a tensor be watched."""
    _of_dlpack = torch.from_dlpack

    def from_numpy(array: Any) -> Any:
        return tensor_of(array) if isinstance(array, WatchedArray) else _from_numpy(array)

    def from_dlpack(value: Any, *, device: Any = None, copy: bool | None = None) -> Any:
        if not isinstance(value, torch.Tensor):
            options = {"device": device, "copy": copy}
            return _of_dlpack(value, **{key: given for key, given in options.items() if given is not None})
        return value.detach().to(device or value.device, copy=bool(copy))

    patches.set(torch, "from_numpy", from_numpy)
    patches.set(torch, "from_dlpack", from_dlpack)
    patches.set(torch.utils.dlpack, "from_dlpack", from_dlpack)
    for name in TAKING:
        patches.set(np, name, taking(getattr(np, name), torch.Tensor))
    for name in _SAVING:
        patches.set(np, name, _given_arrays(getattr(np, name)))
    if hasattr(np, "from_dlpack"):
        patches.set(np, "from_dlpack", _taking_dlpack(np.from_dlpack))


def taking(original: Callable[..., Any], kind: Any) -> Callable[..., Any]:
    """Return one of the functions `TAKING` that takes tensors of a class by their `numpy`, and watched arrays as such.

    By itself it returns a plain array of the same memory, which can't be watched.
    """

    @functools.wraps(original)
    def taken(value: Any, *args: Any, **kwargs: Any) -> Any:
        array = value.numpy() if type(value) is kind and not value.is_cuda else value
        if not isinstance(array, WatchedArray):
            return original(value, *args, **kwargs)
        return array.taken_as(original(array.view(np.ndarray), *args, **kwargs))

    return taken


def _given_arrays(original: Any) -> Callable[..., Any]:
    """Return a function of numpy's that gets arrays for the tensors of the host that it is called with."""

    def array_of(value: Any) -> Any:
        return value.numpy() if isinstance(value, torch.Tensor) and not value.is_cuda else value

    @functools.wraps(original)
    def given(*args: Any, **kwargs: Any) -> Any:
        return original(*map(array_of, args), **{key: array_of(value) for key, value in kwargs.items()})

    return given


def _taking_dlpack(original: Any) -> Callable[..., Any]:
    """Return `numpy.from_dlpack`, which takes tensors of the host by their `numpy`."""

    @functools.wraps(original)
    def from_dlpack(value: Any, *args: Any, **kwargs: Any) -> Any:
        own = isinstance(value, torch.Tensor) and not value.is_cuda and not kwargs
        return value.numpy() if own else original(value, *args, **kwargs)

    return from_dlpack


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
