"""Read the values in a pickle or a file of `torch.save`, without running anything that it names.

A pickle names classes and functions to rebuild its objects with. Those of Python, NumPy and torch that only hold values
are known here; every other object is kept as its class's name, arguments and state. Storages are read from torch's zip
files as NumPy arrays, whatever device they are tagged with, so torch isn't needed.
"""

from __future__ import annotations

import codecs
import collections
import io
import pickle
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

_BUILTINS = frozenset("set frozenset complex bytearray slice range list dict tuple int float bool str bytes".split())
_DTYPES = {
    "DoubleStorage": "f8", "FloatStorage": "f4", "HalfStorage": "f2", "LongStorage": "i8", "IntStorage": "i4",
    "ShortStorage": "i2", "CharStorage": "i1", "ByteStorage": "u1", "BoolStorage": "?", "ComplexFloatStorage": "c8",
    "ComplexDoubleStorage": "c16", "BFloat16Storage": "bf16",
}  # fmt: skip
"""NumPy's types of torch's storages; NumPy has no bfloat16."""


class Recorded:
    """An object of an unknown class: what a pickle gives to rebuild it."""

    kind = ""
    parts: list[Any]

    def __new__(cls, *arguments: Any, **keywords: Any) -> Recorded:
        """Take the arguments here, since a pickle needn't call `__init__`."""
        made = super().__new__(cls)
        made.parts = [*arguments, *keywords.items()]
        return made

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        self.parts.append(state)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.parts.append((key, value))

    def append(self, value: Any) -> None:
        """Take what a subclass of list holds."""
        self.parts.append(value)

    def extend(self, values: Any) -> None:
        """Take what a subclass of list holds."""
        self.parts += values

    def add(self, value: Any) -> None:
        """Take what a subclass of set holds."""
        self.parts.append(value)


class _Unpickler(pickle.Unpickler):
    """Rebuilds known values; `storage` gives the elements of a tensor."""

    def __init__(self, file: Any, storage: Callable[[Any], Any] | None = None) -> None:
        super().__init__(file, encoding="latin1")
        self._storage = storage

    def persistent_load(self, pid: Any) -> Any:
        if self._storage is None:
            raise pickle.UnpicklingError("it refers to something outside")
        return self._storage(pid)

    def find_class(self, module: str, name: str) -> Any:
        if module == "builtins" and name in _BUILTINS:
            return getattr(__import__("builtins"), name)
        known = _KNOWN.get((module.replace("numpy._core", "numpy.core"), name))
        return known if known is not None else type("Recorded", (Recorded,), {"kind": f"{module}.{name}"})


def _tensor(storage: Any, offset: int, size: Any, stride: Any, *others: Any) -> Any:
    """Return the elements of a tensor of torch's, as `torch._utils._rebuild_tensor_v2` makes it."""
    if not isinstance(storage, np.ndarray):
        return [storage, offset, size, stride]
    size, stride = tuple(size), tuple(stride)
    if offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True) if n) >= max(len(storage), 1) and all(size):
        raise pickle.UnpicklingError("a tensor is larger than its storage")
    steps = [s * storage.itemsize for s in stride]
    return np.lib.stride_tricks.as_strided(storage[offset:], size, steps)


_KNOWN: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("collections", "Counter"): collections.Counter,
    ("_codecs", "encode"): codecs.encode,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("numpy.core.multiarray", "_reconstruct"): getattr(np, "_core", getattr(np, "core", np)).multiarray._reconstruct,
    ("numpy.core.multiarray", "scalar"): getattr(np, "_core", getattr(np, "core", np)).multiarray.scalar,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_parameter"): lambda data, *others: data,
    ("torch", "Size"): lambda sizes=(): tuple(sizes),
    ("torch.storage", "_load_from_bytes"): lambda data: saved_by_older_torch(data),
}
_MAGIC = 0x1950A86A20F9469CFC6C
"""The first number in a file of torch's older format (torch/serialization.py)."""


def unpickled(data: bytes) -> Any:
    """Return the value of a pickle.

    Raises:
        Exception: it isn't one, or refers to something outside.
    """
    file = io.BytesIO(data)
    value = _Unpickler(file).load()
    if file.read(1):
        raise pickle.UnpicklingError("something follows it")
    return value


def saved_by_torch(archive: zipfile.ZipFile) -> Any:
    """Return what `torch.save` wrote, with arrays in the place of tensors.

    Raises:
        Exception: it is in another format.
    """
    pickled = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
    folder = pickled.removesuffix("data.pkl")

    def storage(pid: Any) -> Any:
        _, kind, key, _, _ = pid
        dtype = _dtype(kind)
        data = archive.read(f"{folder}data/{key}")
        if dtype is None:
            return data
        if dtype == "bf16":
            return (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4")
        return np.frombuffer(data, dtype)

    return _Unpickler(io.BytesIO(archive.read(pickled)), storage).load()


def saved_by_older_torch(data: bytes) -> Any:
    """Return what `torch.save` wrote before it wrote zip files, as pickles of tensors still hold it.

    Raises:
        Exception: it is in another format.
    """
    storages: dict[str, Any] = {}

    def storage(pid: Any) -> Any:
        if pid[0] == "module":  # a class with its source
            return pid[1]
        _, kind, key, _, numel, *_ = pid
        dtype = {"bf16": "<u2", None: "unknown"}.get(_dtype(kind), _dtype(kind))
        return storages.setdefault(key, np.zeros(numel, dtype))

    file = io.BytesIO(data)
    if _Unpickler(file).load() != _MAGIC:
        raise pickle.UnpicklingError("it isn't torch's")
    _, _, value, keys = (_Unpickler(file, storage).load() for _ in range(4))
    for key in keys:
        file.read(8)  # the number of elements once more
        elements = storages[key]
        elements[:] = np.frombuffer(file.read(elements.nbytes), elements.dtype)
    return value


def _dtype(kind: Any) -> str | None:
    return _DTYPES.get(getattr(kind, "kind", "").rpartition(".")[2])


__all__ = ["Recorded", "saved_by_older_torch", "saved_by_torch", "unpickled"]
