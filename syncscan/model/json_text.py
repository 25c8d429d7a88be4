"""From a parsed JSON value of any kind to text that strict readers take: whole numbers and characters, not too deep."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

DEEPEST = 100
"""Values nested deeper are left out: readers differ in how deep they go, and none has to go deeper than this."""
MOST_BITS = 14_000
"""Integers of more bits are left out: Python reads no more than 4,300 digits (`sys.set_int_max_str_digits`)."""

_UNWRITABLE = ValueError, OverflowError, RecursionError
"""What msgspec raises for a value that it has no JSON for."""


def whole_characters(text: str) -> str:
    """A text that can be encoded: a half of a character, which no UTF-8 holds, is U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def encodable(value: Any) -> Any:
    """A value parsed from JSON, itself where it can be written again; else as `strict_value` makes it."""
    try:
        msgspec.json.encode(value)
    except _UNWRITABLE:
        return strict_value(value)
    return value


def indented(document: Any) -> str:
    """A document as JSON, two spaces a level, as strict as `strict_text`."""
    try:
        encoded = msgspec.json.encode(document)
    except _UNWRITABLE:
        plain = msgspec.to_builtins(document) if isinstance(document, msgspec.Struct) else document
        encoded = msgspec.json.encode(strict_value(plain))
    return msgspec.json.format(encoded, indent=2).decode()


def strict_value(value: Any) -> Any:
    """A value of which any encoder makes JSON that any reader takes; what is left out or null as in `strict_text`."""
    return _plain(value, 0)


def strict_text(value: Any) -> str:
    """A value as JSON text.

    What has no JSON is null: NaN, infinities, integers that no reader takes, what is nested too deep. Halves of
    characters are U+FFFD.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (ValueError, RecursionError):
        return json.dumps(_plain(value, 0), ensure_ascii=False)
    # Where Python's own limit lies differs: a version's, or what some package has set it to.
    may_be_too_deep = text.count("[") + text.count("{") > DEEPEST
    return json.dumps(_plain(value, 0), ensure_ascii=False) if may_be_too_deep else text


def _plain(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int):
        return value if value.bit_length() < MOST_BITS else None
    if depth == DEEPEST:
        return None
    if isinstance(value, dict):
        return {_plain(key, depth): _plain(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner, depth + 1) for inner in value]
    return None
