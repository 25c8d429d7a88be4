"""Turn any parsed JSON value into text for strict readers: whole numbers and characters, not nested too deep."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec

if TYPE_CHECKING:
    Range = tuple[float, float]
else:
    Range = Annotated[tuple[float, ...], msgspec.Meta(min_length=2, max_length=2)]  # shorter in a schema
"""Least and most of a number in a document."""


def about(words: str) -> msgspec.Meta:
    """Return the text on a field that the schemas in `syncscan/schemas` show."""
    return msgspec.Meta(description=words)


Struct = TypeVar("Struct", bound=msgspec.Struct)


def written(kind: type[Struct], value: Any, **others: Any) -> Struct:
    """Return what a document has of a value: each field of this kind by the value's own name for it, or as given."""
    names = (name for name in kind.__struct_fields__ if name not in others)
    return kind(**{name: getattr(value, name) for name in names}, **others)


DEEPEST = 100
"""Values nested deeper are left out: readers differ in their limit, and none needs more than this."""
MOST_BITS = 14_000
"""Integers of more bits are left out: Python reads no more than 4,300 digits (`sys.set_int_max_str_digits`)."""

_UNWRITABLE = ValueError, OverflowError, RecursionError
"""Errors that msgspec raises for a value without a JSON form."""


def whole_characters(text: str) -> str:
    """Return text that can be encoded: lone surrogates, which UTF-8 can't hold, become U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def encodable(value: Any) -> Any:
    """Return a value parsed from JSON, unchanged if it can be written again, else made strict by `strict_value`."""
    try:
        msgspec.json.encode(value)
    except _UNWRITABLE:
        return strict_value(value)
    return value


def indented(document: Any) -> str:
    """Return a document as JSON, indented by two spaces, as strict as `strict_text`."""
    try:
        encoded = msgspec.json.encode(document)
    except _UNWRITABLE:
        plain = msgspec.to_builtins(document) if isinstance(document, msgspec.Struct) else document
        encoded = msgspec.json.encode(strict_value(plain))
    return msgspec.json.format(encoded, indent=2).decode()


def strict_value(value: Any) -> Any:
    """Return a value that any encoder writes and any reader accepts; `strict_text` says what becomes null."""
    return _plain(value, 0)


def strict_text(value: Any) -> str:
    """Return a value as JSON text.

    Values without a JSON form become null: NaN, infinities, integers that no reader accepts, values nested too deep.
    Lone surrogates become U+FFFD.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (ValueError, RecursionError):
        return json.dumps(_plain(value, 0), ensure_ascii=False)
    # Python's own recursion limit differs by version, and packages may change it.
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


class Document(msgspec.Struct, frozen=True):
    """Keys with which every document of `--format json` begins.

    A document is a Struct next to the function that builds it: msgspec encodes it unchanged, and the files in `schemas`
    are generated from the same types (tests/schemas.py has their versions). Times are µs, means per step unless a name
    says otherwise; None is unknown.
    """

    schema: str
    syncscan: Annotated[str, about("the version that wrote this")]
