"""Compare the values in the files that runs of a program write: arrays, numbers, text, or else their bytes."""

from __future__ import annotations

import contextlib
import gzip
import importlib
import io
import json
import zipfile
import zlib
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from syncscan.fixing.printed_lines import TOLERANCE, SteadyLines, instead, same_line, same_number

Leaves = dict[str, Any]
"""Values that hold no others, by where they are: `["loss"][3]`."""
_ZIP, _GZIP, _NUMPY = b"PK\x03\x04", b"\x1f\x8b", b"\x93NUMPY"


def text_of(data: bytes, name: str) -> str | None:
    """Return a file's text; None for a file that holds no text, or one value: JSON is read as that."""
    if name.endswith((".json", ".ipynb")) and _json(data) is not None:
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def leaves(data: bytes, name: str) -> Leaves:
    try:
        return dict(_flat(_value(data, name), ""))
    except (RuntimeError, TypeError):  # a value within itself, or a tensor that is no array, such as a lazy conjugate
        return {"": data}


def _value(data: bytes, name: str) -> Any:
    """Return what a file holds, by how it begins; its bytes where that isn't known."""
    if name.endswith((".json", ".ipynb")) and (document := _json(data)) is not None:
        return document[0]
    if data.startswith(_GZIP):
        with contextlib.suppress(OSError, EOFError, zlib.error):
            return _member(gzip.decompress(data), name.removesuffix(".gz"))
    for reads in (_zip, _numpy):
        try:
            value = reads(data)
        except Exception:  # a damaged file, or one of another kind that begins alike
            continue
        if value is not None:
            return value
    return data


def _json(data: bytes) -> tuple[Any] | None:
    try:
        return (json.loads(data),)
    except (ValueError, RecursionError):
        return None


def _zip(data: bytes) -> Any:
    """Return the members of an archive; what torch saved, without running anything that it names."""
    if not data.startswith(_ZIP):
        return None
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if any(name.endswith("/data.pkl") for name in archive.namelist()):
            return importlib.import_module("torch").load(io.BytesIO(data), map_location="cpu", weights_only=True)
        return {name: _member(archive.read(name), name) for name in archive.namelist()}


def _member(data: bytes, name: str) -> Any:
    text = text_of(data, name)
    return _value(data, name) if text is None else text


def _numpy(data: bytes) -> Any:
    return np.load(io.BytesIO(data), allow_pickle=False) if data.startswith(_NUMPY) else None


def _flat(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yield the values in containers, with their place."""
    if isinstance(value, Mapping):
        parts = [(f"{place}[{key!r}]", inner) for key, inner in value.items()]
    elif isinstance(value, list | tuple | set | frozenset):
        inside = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        parts = [(f"{place}[{k}]", inner) for k, inner in enumerate(inside)]
    elif hasattr(value, "detach"):
        tensor = value.detach()
        yield place, (tensor.float() if "bfloat16" in str(tensor.dtype) else tensor).numpy()
        return
    else:
        yield place, value
        return
    for where, inner in parts:
        yield from _flat(inner, where)
    if not parts:
        yield place, f"empty {type(value).__name__}"


def content(path: Path) -> bytes:
    """Return what stands for a file: its bytes, or where a link leads."""
    if path.is_symlink():
        return b"-> " + str(path.readlink()).encode(errors="surrogateescape")
    return path.read_bytes() if path.is_file() else b""


OF_ALL = 10.0
"""An element of an array may also differ by this many tolerances of the array's root mean square: where a sum's parts
cancel, its rounding errors don't."""


class SteadyValues:
    """The values of two unchanged runs by place, and which of them are the same in both."""

    def __init__(self, values: Leaves, again: Leaves) -> None:
        self._values = values
        self._steady = {place for place in values.keys() & again.keys() if same_value(values[place], again[place])}
        self._known = values.keys() | again.keys()
        self.noise = [place for place in [*values, *(again.keys() - values.keys())] if place not in self._steady]
        """Places whose values differ between the two."""

    def has_results(self, constants: Container[float] = ()) -> bool:
        """Return whether a number that is no constant, an array, or a file's other bytes are the same in both."""
        return any(_is_result(self._values[place], constants) for place in self._steady)

    def differs(self, other: Leaves, does: str) -> str:
        """Return how another run's values differ, as the end of a sentence begun with `does`; empty if they don't."""
        for place in (place for place in self._values if place in self._steady):
            if place not in other:
                return f"{does} no value {place}"
            if not same_value(self._values[place], other[place]):
                return f"{does} {_difference(other[place], self._values[place])}" + (f" as {place}" if place else "")
        strange = [place for place in other if place not in self._known]
        if strange and not self.noise:
            return f"{does} a value {strange[0]}, as no unchanged run does"
        return ""


def same_value(a: Any, b: Any) -> bool:
    """Return whether two values are equal: of one type, and fractions up to rounding."""
    if isinstance(a, np.ndarray | np.generic) and isinstance(b, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and _same_array(np.asarray(a), np.asarray(b))
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return same_number(repr(a), repr(b))
    if isinstance(a, str):
        left, right = a.splitlines(), b.splitlines()
        return len(left) == len(right) and all(map(same_line, left, right))
    return bool(a == b)


def _same_array(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    if a.dtype.kind not in "fc":
        return np.array_equal(a, b)
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide), b.astype(wide)
    equal = (x == y) | (np.isnan(x) & np.isnan(y))
    finite = np.isfinite(x) & np.isfinite(y)
    if equal.all() or not (equal | finite).all():
        return bool(equal.all())
    size = np.sqrt(np.mean(np.abs(x[finite]) ** 2))
    allowed = TOLERANCE * np.maximum(np.abs(x), np.abs(y)) + OF_ALL * TOLERANCE * size
    return bool((equal | (np.abs(x - y) <= allowed)).all())


def _difference(new: Any, old: Any) -> str:
    arrays = [isinstance(value, np.ndarray) and value.size > 1 for value in (new, old)]
    if all(arrays):
        return "other numbers"
    if any(isinstance(value, bytes) for value in (new, old)):
        return "other bytes"
    return instead(f"{_kind(new, old)}{new}", f"{_kind(old, new)}{old}")


def _kind(value: Any, other: Any) -> str:
    """Return the type of a value where the other is of another type."""
    return "" if type(value) is type(other) else f"{type(value).__name__} "


def _is_result(value: Any, constants: Container[float]) -> bool:
    if isinstance(value, str):
        return "\n" in value and SteadyLines(value, value).has_results(constants)
    if isinstance(value, np.ndarray | bytes):
        return bool(len(value) if isinstance(value, bytes) else value.size)
    number = isinstance(value, int | float | complex | np.generic) and not isinstance(value, bool)
    return number and value not in constants
