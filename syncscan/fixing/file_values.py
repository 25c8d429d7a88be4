"""Read a file that a program wrote as values that can be compared: arrays, numbers, text, or else its bytes."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from syncscan.fixing import event_file
from syncscan.fixing.safe_pickle import Recorded, saved_by_older_torch, saved_by_torch, unpickled

Leaves = dict[str, Any]
"""Values that hold no others, by where they are: `["loss"][3]`."""
MOST_DEPTH = 60
_ZIP, _GZIP, _NUMPY = b"PK\x03\x04", b"\x1f\x8b", b"\x93NUMPY"
_PICKLE = tuple(b"\x80" + bytes([protocol]) for protocol in range(2, 6))
_SAFETENSORS = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1",
    "BOOL": "?",
}  # fmt: skip


def text_of(data: bytes, name: str) -> str | None:
    """Return a file's text; None for a file that holds no text, or one value: JSON is read as that.

    Args:
        data: its content.
        name: its name.
    """
    if name.endswith((".json", ".ipynb")) and _json(data) is not None:
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def leaves(data: bytes, name: str) -> Leaves:
    """Return the values in a file that isn't text.

    Args:
        data: its content.
        name: its name.
    """
    return dict(_flat(_value(data, name), "", ()))


def _value(data: bytes, name: str) -> Any:
    """Return what a file holds, by how it begins; its bytes where that isn't known."""
    if name.endswith((".json", ".ipynb")) and (document := _json(data)) is not None:
        return document[0]
    if data.startswith(_GZIP):
        with contextlib.suppress(OSError, EOFError, zlib.error):
            return _member(gzip.decompress(data), name.removesuffix(".gz"))
    for reads in (_zip, _numpy, _pickled, _safetensors, event_file.read):
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
    """Return the members of an archive; what torch saved, as that."""
    if not data.startswith(_ZIP):
        return None
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if any(name.endswith("/data.pkl") for name in archive.namelist()):
            return saved_by_torch(archive)
        return {name: _member(archive.read(name), name) for name in archive.namelist()}


def _member(data: bytes, name: str) -> Any:
    text = text_of(data, name)
    return _value(data, name) if text is None else text


def _numpy(data: bytes) -> Any:
    return np.load(io.BytesIO(data), allow_pickle=False) if data.startswith(_NUMPY) else None


def _pickled(data: bytes) -> Any:
    if not data.startswith(_PICKLE):
        return None
    try:
        return saved_by_older_torch(data)
    except Exception:
        return unpickled(data)


def _safetensors(data: bytes) -> Any:
    """Return the tensors of a file in the format of huggingface/safetensors: a header in JSON, and their bytes."""
    if data[8:9] != b"{":
        return None
    (length,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    result: dict[str, Any] = {}
    for name, tensor in header.items():
        if name == "__metadata__":
            result[name] = tensor
            continue
        begin, end = tensor["data_offsets"]
        dtype = _SAFETENSORS.get(tensor["dtype"])
        content: Any = body[begin:end]
        if tensor["dtype"] == "BF16":
            content = (np.frombuffer(content, "<u2").astype("<u4") << 16).view("<f4")
        elif dtype:
            content = np.frombuffer(content, dtype).reshape(tensor["shape"])
        result[name] = content
    return result


def _flat(value: Any, place: str, around: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    """Yield the values in containers and objects, with their place."""
    parts: Iterator[tuple[str, Any]]
    if isinstance(value, Mapping):
        parts = ((f"{place}[{key!r}]", inner) for key, inner in value.items())
    elif isinstance(value, list | tuple):
        parts = ((f"{place}[{k}]", inner) for k, inner in enumerate(value))
    elif isinstance(value, set | frozenset):
        parts = ((f"{place}{{{k}}}", inner) for k, inner in enumerate(sorted(map(repr, value))))
    elif isinstance(value, Recorded):
        parts = ((f"{place}.{value.kind}[{k}]", inner) for k, inner in enumerate(value.parts))
    elif isinstance(value, type) and issubclass(value, Recorded):
        yield place, value.kind
        return
    elif isinstance(value, np.ndarray) and value.dtype == object:
        parts = ((f"{place}[{k}]", inner) for k, inner in enumerate(value.ravel().tolist()))
    else:
        yield place, value
        return
    if id(value) in around or len(around) > MOST_DEPTH:
        yield place, f"{type(value).__name__} within itself"
        return
    empty = True
    for where, inner in parts:
        empty = False
        yield from _flat(inner, where, (*around, id(value)))
    if empty:
        yield place, f"empty {type(value).__name__}"


def content(path: Path) -> bytes:
    """Return what stands for a file: its bytes, or where a link leads."""
    if path.is_symlink():
        return b"-> " + str(path.readlink()).encode(errors="surrogateescape")
    return path.read_bytes() if path.is_file() else b""


__all__ = ["Leaves", "content", "leaves", "text_of"]
