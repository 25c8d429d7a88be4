"""The data that a saved analysis holds besides its report: the trace as packed columns, options and sources.

A saved analysis is a report of schema `syncscan.analysis/2` with one more key, `saved`. Its reader gets the parts of
the trace that analyses use, so that every question can be asked again. It comes from a file: it is decoded into frozen
types here, and invalid data is rejected.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

VERSION = 4
"""Version of the key `saved`, the only one that is read. A change of the types below increments it."""
MOST_ROWS = 2**31

_GROWING = frozenset({"ts", "from_ts", "to_ts", "correlation", "external", "awaits"})
"""Columns that grow from row to row: stored as differences, which zlib compresses to half the size."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class Packed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Columns of one length, each base64 of zlib of little-endian integers."""

    rows: Annotated[int, msgspec.Meta(ge=0, le=MOST_ROWS)]
    columns: dict[str, bytes]


class Track(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A row of a trace viewer: a host thread, or a stream of a device.

    `pid` and `tid` are text, because traces write both numbers and words there.
    """

    pid: str
    tid: str
    process: str
    thread: str


class SavedTrace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The parts of a linked trace that analyses read."""

    path: str
    size_bytes: Count
    events: Count
    vendor: str
    complete: bool
    warnings: tuple[str, ...]
    metadata: dict[str, Any]
    strings: tuple[str, ...]
    tracks: tuple[Track, ...]
    slices: Packed
    frames: Packed
    flows: Packed


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of an analysis, as in `api.analyze`."""

    step_ms: Annotated[float, msgspec.Meta(gt=0, le=1e12)] | None = None
    step_scope: str | None = None
    steps: Literal["auto", "none"] = "auto"
    process: str | None = None
    chosen: tuple[Count, Count] | None = None
    """First analyzed step among those found, and exclusive end."""


class StoredContext(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Data that a saved analysis stores besides its trace."""

    asked: Asked
    sources: dict[str, str]
    """Text of each program file as it was, with functions without a sync left blank."""
    newer: tuple[str, ...] = ()
    """Files that are newer than the trace."""


class Saved(StoredContext, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Value of the key `saved`."""

    version: Annotated[int, msgspec.Meta(ge=1, le=VERSION)] = VERSION
    trace: SavedTrace


def packed(columns: Mapping[str, Any], level: int) -> Packed:
    """Pack integer arrays of one length, compressed by zlib at this level."""
    rows = max((len(column) for column in columns.values()), default=0)
    return Packed(rows=rows, columns={name: _pack(name, column, level) for name, column in columns.items()})


def _pack(name: str, column: Any, level: int) -> bytes:
    stored = np.diff(column, prepend=column.dtype.type(0)) if name in _GROWING else column
    return zlib.compress(stored.astype(column.dtype.newbyteorder("<")).tobytes(), level)


def unpacked(stored: Packed, types: Mapping[str, Any]) -> dict[str, Any]:
    """Unpack the arrays, writable and in native byte order; a ValueError unless all columns are there and undamaged."""
    if stored.columns.keys() != types.keys():
        raise ValueError(f"its columns aren't {', '.join(types)}")
    return {name: _unpack(name, stored, np.dtype(kind)) for name, kind in types.items()}


def _unpack(name: str, stored: Packed, kind: np.dtype[Any]) -> Any:
    size = stored.rows * kind.itemsize
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(stored.columns[name], size + 1)
    except zlib.error:
        raise ValueError(f"its column {name} is damaged") from None
    if len(data) != size:
        raise ValueError(f"its column {name} hasn't {stored.rows} rows")
    column = np.frombuffer(data, kind.newbyteorder("<")).astype(kind)
    return np.cumsum(column, dtype=kind) if name in _GROWING else column
