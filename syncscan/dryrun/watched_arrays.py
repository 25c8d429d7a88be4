"""Notice when a program reads an array that shares its memory with a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_READING = (
    "__getitem__ __iter__ __float__ __int__ __bool__ __index__ __complex__ __repr__ __str__ __format__ __contains__ "
    "__reduce__ __reduce_ex__ __copy__ __deepcopy__ item tolist tobytes tofile copy astype dump dumps "
    "argmax argmin sort argsort nonzero dot take searchsorted"
).split()
"""Methods of arrays that read their values without a ufunc or a function of numpy's."""


class WatchedArray(np.ndarray[Any, Any]):
    """An array that says when it is read; views of it do as well, results computed from it are plain."""

    _read: Callable[[], None] | None = None

    def __array_finalize__(self, source: Any) -> None:
        self._read = getattr(source, "_read", None)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Run a ufunc on plain arrays."""
        return getattr(ufunc, method)(*map(_plain, inputs), **{k: _plain(v) for k, v in options.items()})

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Run a function of numpy's."""
        self._noted()
        return super().__array_function__(func, types, args, kwargs)

    def _noted(self) -> None:
        if self._read is not None:
            self._read()


def watch(array: Any, read: Callable[[], None]) -> Any:
    """Return a view of an array that calls `read` whenever a value of it is read."""
    watched = array.view(WatchedArray)
    watched._read = read
    return watched


def _plain(value: Any) -> Any:
    if isinstance(value, WatchedArray):
        value._noted()
        return value.view(np.ndarray)
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value


def _reading(name: str) -> Any:
    method = getattr(np.ndarray, name)

    def read(self: WatchedArray, *args: Any, **kwargs: Any) -> Any:
        self._noted()
        return method(self, *args, **kwargs)

    read.__name__ = name
    return read


for _name in _READING:
    if hasattr(np.ndarray, _name):
        setattr(WatchedArray, _name, _reading(_name))
