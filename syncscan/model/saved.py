"""What a saved analysis holds beside its report: the trace as packed columns, what was asked of it, its sources.

A saved analysis is a report of schema `syncscan.analysis/1` with one key more, `saved`. Whoever reads it has the trace
again, as far as anything was made of it, so that every question can be asked anew. It comes from a file: it is decoded
into frozen types here, and what doesn't hold is refused.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

VERSION = 2
"""Of the key `saved`. A change of the types below makes a new one, and leaves what reads the older.

1 has no column `group`."""
MOST_ROWS = 2**31

_GROWING = frozenset({"ts", "from_ts", "to_ts", "correlation", "external", "awaits"})
"""Columns that grow from row to row: stored as differences, of which zlib makes half as much."""

Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class Packed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Columns of one length: each is base64 of zlib of little-endian integers."""

    rows: Annotated[int, msgspec.Meta(ge=0, le=MOST_ROWS)]
    columns: dict[str, bytes]


class SavedTrack(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A `Track`."""

    pid: str
    tid: str
    process: str
    thread: str


class SavedTrace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A linked trace, as much of it as analyses read."""

    path: str
    size_bytes: Count
    events: Count
    vendor: str
    complete: bool
    warnings: tuple[str, ...]
    metadata: dict[str, Any]
    strings: tuple[str, ...]
    tracks: tuple[SavedTrack, ...]
    slices: Packed
    frames: Packed
    flows: Packed


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What was asked of an analysis, as of `api.analyze`; the defaults where nothing was."""

    step_ms: Annotated[float, msgspec.Meta(gt=0, le=1e12)] | None = None
    step_scope: str | None = None
    steps: Literal["auto", "none"] = "auto"
    process: str | None = None
    chosen: tuple[Count, Count] | None = None
    """Of the steps found the first that is analysed, and the first behind."""


class Saved(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The key `saved`."""

    version: Annotated[int, msgspec.Meta(ge=1, le=VERSION)] = VERSION
    asked: Asked
    sources: dict[str, str]
    """File of the program → its text as it was, functions without a sync left blank."""
    newer: tuple[str, ...] = ()
    """Those of these files that were written after the trace was recorded."""
    trace: SavedTrace


class Kept(msgspec.Struct, frozen=True):
    """What a saved analysis keeps beside its trace."""

    asked: Asked
    sources: Mapping[str, str]
    """File of the program → its text as it was when the analysis was saved."""
    newer: tuple[str, ...] = ()
    """Those of these files that had been written after the trace was recorded."""


def packed(columns: Mapping[str, Any], level: int) -> Packed:
    """Arrays of integers of one length, packed.

    Args:
        columns: name → array.
        level: of zlib, 1 to 9.
    """
    rows = max((len(column) for column in columns.values()), default=0)
    return Packed(rows=rows, columns={name: _packed(name, column, level) for name, column in columns.items()})


def _packed(name: str, column: Any, level: int) -> bytes:
    stored = np.diff(column, prepend=column.dtype.type(0)) if name in _GROWING else column
    return zlib.compress(stored.astype(column.dtype.newbyteorder("<")).tobytes(), level)


def unpacked(stored: Packed, types: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays again, writable and in the machine's own byte order.

    Args:
        stored: from a file.
        types: name → numpy type of each column that there must be.

    Raises:
        ValueError: a column lacks, is one too many, isn't packed as it should be, or has another length.
    """
    if stored.columns.keys() != types.keys():
        raise ValueError(f"its columns aren't {', '.join(types)}")
    return {name: _unpacked(name, stored, np.dtype(kind)) for name, kind in types.items()}


def _unpacked(name: str, stored: Packed, kind: np.dtype[Any]) -> Any:
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
