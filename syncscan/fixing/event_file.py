"""Read TensorBoard's event files: records of protocol buffers, compared field by field as their schema isn't needed.

A record is its length, a checksum of that, its data, and a checksum of these (tensorflow, `lib/io/record_writer.h`).
A message is a sequence of a field's number, its wire type and its value (protobuf.dev, "Encoding").
"""

from __future__ import annotations

import struct
from typing import Any

_VERSION = b"brain.Event:"
"""In the first record of each event file."""


def read(data: bytes) -> list[Any] | None:
    """Return the messages of an event file; None for any other file."""
    if _VERSION not in data[:64]:
        return None
    result, at = [], 0
    while at + 16 <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        result.append(_message(data[at + 12 : at + 12 + length]))
        at += length + 16
    return result


def _message(data: bytes) -> list[Any]:
    """Return the fields of a message, as pairs of number and value.

    Raises:
        ValueError, struct.error, IndexError: the bytes are no message.
    """
    fields: list[Any] = []
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind, value = key & 7, None
        if kind == 0:
            value, at = _varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif kind == 2:
            length, at = _varint(data, at)
            if at + length > len(data):
                raise ValueError("a field ends behind its message")
            value, at = _bytes(data[at : at + length]), at + length
        elif kind == 5:
            value, at = struct.unpack_from("<f", data, at)[0], at + 4
        else:
            raise ValueError(f"there is no wire type {kind}")
        fields.append((key >> 3, value))
    return fields


def _bytes(data: bytes) -> Any:
    """Return what a field of bytes holds: text, a message, or else the bytes."""
    try:
        text = data.decode()
        if text.isprintable():
            return text
    except UnicodeDecodeError:
        pass
    try:
        return _message(data)
    except (ValueError, struct.error, IndexError):
        return data


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value, at, shift = value | (byte & 0x7F) << shift, at + 1, shift + 7
        if not byte & 0x80:
            return value, at


__all__ = ["read"]
