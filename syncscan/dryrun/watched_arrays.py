"""Notice when a program reads or writes an array that shares its memory with a tensor."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from syncscan.dryrun import tensor_memory
from syncscan.dryrun.recorder import DryRunSession
from syncscan.patches import Patches

Use = Callable[[Any, Any, bool], None]
"""Called with the tensor, the part of its memory that is used, as an array, and whether it is written to."""

_READING = (
    "__float__ __int__ __bool__ __index__ __complex__ __repr__ __str__ __format__ __contains__ __copy__ __deepcopy__ "
    "__reduce__ __reduce_ex__ item tolist tobytes tofile copy astype dump dumps argmax argmin sort argsort nonzero dot "
    "take searchsorted"
).split()
"""Methods of arrays that read their values without a ufunc or a function of numpy's."""
_WRITING = "fill put itemset partition sort byteswap setfield".split()
"""Methods that write to the array itself."""
_WRITTEN_FIRST = frozenset("copyto put place putmask put_along_axis fill_diagonal".split())
"""Functions of numpy's that write to their first argument."""


class WatchedArray(np.ndarray[Any, Any]):
    """An array that says when it is read or written; views of it do as well, results computed from it are plain."""

    tensor: Any = None
    """The tensor whose memory it shares; None of one that isn't watched."""
    _use: Use | None = None

    def __array_finalize__(self, source: Any) -> None:
        self.tensor, self._use = getattr(source, "tensor", None), getattr(source, "_use", None)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Run a ufunc on plain arrays; what it was given to write to is returned as given."""
        given = options.pop("out", ())
        if given:
            options["out"] = tuple(map(_written, given))
        result = getattr(ufunc, method)(*map(plain, inputs), **{k: plain(v) for k, v in options.items()})
        return given[0] if len(given) == 1 else given or result

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        target = kwargs.get("out")
        if func.__name__ in _WRITTEN_FIRST and args and isinstance(args[0], WatchedArray):
            target, args = args[0], (_written(args[0]), *map(plain, args[1:]))
        elif isinstance(target, WatchedArray):
            kwargs = {**kwargs, "out": _written(target)}
        if func.__name__ in _VIEWING:
            return super().__array_function__(func, types, args, kwargs)
        result = func(*map(plain, args), **{k: plain(v) for k, v in kwargs.items()})
        return target if isinstance(target, WatchedArray) and result is not None else result

    def __getitem__(self, key: Any) -> Any:
        """Return a view, which is no read, or the values that are read."""
        result = super().__getitem__(key)
        if isinstance(result, WatchedArray) and np.may_share_memory(result, self):
            return result
        self._note(key)
        return result.view(np.ndarray) if isinstance(result, WatchedArray) else result

    def __setitem__(self, key: Any, value: Any) -> None:
        self._note(key, written=True)
        np.ndarray.__setitem__(self.view(np.ndarray), key, plain(value))

    def __iter__(self) -> Any:
        """Go through rows, which are views, or values."""
        return (self[at] for at in range(len(self)))

    def taken_as(self, taken: Any) -> Any:
        """Return what a function made of this array's plain view: watched as this one if it is of the same memory.

        A copy is plain, and this array is read for it.
        """
        if not isinstance(taken, np.ndarray) or not np.may_share_memory(taken, self):
            self._note()
            return taken
        watched = taken.view(WatchedArray)
        watched.tensor, watched._use = self.tensor, self._use
        return watched

    def _note(self, key: Any = ..., *, written: bool = False) -> None:
        if self._use is not None:
            self._use(self.tensor, _part(self.view(np.ndarray), key), written)


WatchedArray.__module__, WatchedArray.__name__, WatchedArray.__qualname__ = "numpy", "ndarray", "ndarray"
# printed like any array, and taken for one where a collate asks for the module of the type

_VIEWING = frozenset(
    "reshape ravel transpose swapaxes moveaxis rollaxis expand_dims squeeze broadcast_to atleast_1d atleast_2d "
    "atleast_3d split array_split hsplit vsplit shares_memory may_share_memory shape ndim size shape_base diagonal "
    "flip flipud fliplr rot90 real imag zeros_like empty_like ones_like full_like result_type can_cast".split()
)
"""Functions of numpy's that read no values, or return views."""


def watch(array: Any, tensor: Any, use: Use) -> Any:
    """Return a view of a tensor's array that calls `use` whenever values of it are read or written."""
    watched = array.view(WatchedArray)
    watched.tensor, watched._use = tensor, use
    return watched


def _part(array: Any, key: Any) -> Any:
    """Return the part that an index names, as a view; the whole array where that is none."""
    keys = key if isinstance(key, tuple) else (key,)
    if not any(k is ... for k in keys):
        keys = (*keys, ...)  # a number's place as a view, too
    part = array[keys]
    return part if np.may_share_memory(part, array) else array


def plain(value: Any) -> Any:
    """Return a plain view of an array all of whose values are read; other values as they are."""
    if isinstance(value, WatchedArray):
        value._note()
        return value.view(np.ndarray)
    return type(value)(map(plain, value)) if type(value) in (tuple, list) else value


def _written(value: Any) -> Any:
    if isinstance(value, WatchedArray):
        value._note(written=True)
        return value.view(np.ndarray)
    return value


def _noting(name: str, *, written: bool) -> Any:
    method = getattr(np.ndarray, name)

    def used(self: WatchedArray, *args: Any, **kwargs: Any) -> Any:
        self._note(written=written)
        return method(self.view(np.ndarray), *map(plain, args), **kwargs)

    used.__name__ = name
    return used


for _name in (*_READING, *_WRITING):
    if hasattr(np.ndarray, _name):
        setattr(WatchedArray, _name, _noting(_name, written=_name in _WRITING))


_from_numpy = torch.from_numpy
_TAKING = ("asarray", "asanyarray", "ascontiguousarray", "array")
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
    for name in _TAKING:
        patches.set(np, name, _taking(getattr(np, name)))
    for name in _SAVING:
        patches.set(np, name, _given_arrays(getattr(np, name)))
    if hasattr(np, "from_dlpack"):
        patches.set(np, "from_dlpack", _taking_dlpack(np.from_dlpack))


def _taking(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return one of the functions `_TAKING` that takes tensors by their `numpy`, and watched arrays as such.

    By itself it returns a plain array of the same memory, which can't be watched.
    """

    @functools.wraps(original)
    def taken(value: Any, *args: Any, **kwargs: Any) -> Any:
        array = value.numpy() if type(value) is torch.Tensor and not value.is_cuda else value
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
    with tensor_memory.without_modes():
        tensor = _from_numpy(array.view(np.ndarray))
        if array.tensor is None:
            return tensor
        storage = array.tensor.untyped_storage()
        offset = tensor.data_ptr() - storage.data_ptr()
        inside = offset >= 0 and offset + tensor.untyped_storage().nbytes() <= storage.nbytes()
        if not inside or offset % tensor.element_size():
            return tensor
        return tensor.new_empty(0).set_(storage, offset // tensor.element_size(), tensor.shape, tensor.stride())
