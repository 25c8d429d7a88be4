"""Encode integer columns as text for the report's script."""

from __future__ import annotations

import base64

import numpy as np
import numpy.typing as npt


def pack(values: npt.ArrayLike, delta: bool = False) -> str:
    """Return a column as base64 of variable-length integers: 7 bits per byte, lowest first, top bit set if more follow.

    Slices lie close together and last briefly, so a start or a length takes two or three bytes instead of eight.

    Args:
        values: integers, none negative.
        delta: store differences; the values must ascend then.

    Raises:
        ValueError: a value (or a difference) is negative.
    """
    column = np.asarray(values, dtype=np.int64)
    if delta and len(column):
        column = np.diff(column, prepend=0)
    if len(column) and int(column.min()) < 0:
        raise ValueError("only ascending or positive columns can be packed")
    return base64.b64encode(_varints(column.astype(np.uint64))).decode("ascii")


def _varints(values: npt.NDArray[np.uint64]) -> bytes:
    sizes = np.ones(len(values), dtype=np.int64)
    for k in range(1, 10):
        sizes += values >= np.uint64(1 << 7 * k)
    out = np.zeros(int(sizes.sum()), dtype=np.uint8)
    first = np.cumsum(sizes) - sizes
    for k in range(int(sizes.max()) if len(sizes) else 0):
        has = sizes > k
        seven = (values[has] >> np.uint64(7 * k)).astype(np.uint8) & 0x7F
        out[first[has] + k] = seven | np.where(sizes[has] > k + 1, 0x80, 0).astype(np.uint8)
    return out.tobytes()
