"""Read a file that a program wrote as values that can be compared: arrays, numbers, text, or else its bytes."""

from __future__ import annotations

import contextlib
import gzip
import importlib
import io
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

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
