"""Read the keys of a trace before and after its list of events, and find what isn't part of the trace."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from syncscan.load.salvage import members
from syncscan.load.split import Head

_NOTHING = " \t\r\n\x00"
"""Characters that may follow a trace: line ends, and zeros that pad a block."""
_LONG = 64 << 10
"""Length from which a value is parsed only on demand: other writers put unused lists of samples there, and parsing
takes 15 times as long as finding the end."""
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class TopLevelKeys(Mapping[str, Any]):
    """The top-level keys of a trace except its events, with their values; long ones are parsed on demand."""

    def __init__(self, values: Mapping[str, Any | msgspec.Raw]) -> None:
        self._values = {key: value for key, value in values.items() if key != "traceEvents"}

    def __getitem__(self, key: str) -> Any:
        value = self._values[key]
        if isinstance(value, msgspec.Raw):
            value = self._values[key] = _parse(value)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(dict(self))

    def __or__(self, other: TopLevelKeys) -> TopLevelKeys:
        return TopLevelKeys(self._values | other._values)


class TextAfterEvents(msgspec.Struct, frozen=True):
    """The text that follows a list of events.

    `text` goes up to the end of the object around the list, and is empty if that is damaged. `left_out` is what follows
    the object, `lists` the further lists of events in it; `damaged` tells whether the object is damaged.
    """

    members: TopLevelKeys
    lists: Sequence[list[Any]]
    text: str
    left_out: str
    damaged: bool = False


def metadata_before(head: Head) -> TopLevelKeys:
    if not head.whole:
        return TopLevelKeys(members(head.text.decode("utf-8", "replace")))
    if not head.text:
        return TopLevelKeys({})
    text = head.text + b"[]}"
    strict = _strictly(text)
    return TopLevelKeys(json.loads(text)) if strict is None else strict


def ending(tail: str, in_object: bool) -> TextAfterEvents:
    """Return the readable top-level keys after the list of events, and what follows the last one.

    If the list isn't `in_object`, nothing ends.
    """
    if not in_object:
        read = members(tail)
        return TextAfterEvents(TopLevelKeys(read), (), "", "" if read else tail.strip(_NOTHING))
    before = '{"traceEvents": 0'
    if '"traceEvents"' not in tail and (strictly := _strictly(before + tail)) is not None:  # nearly always
        return TextAfterEvents(strictly, (), tail, "")
    pairs: list[tuple[str, Any]] = []

    def remember(of_object: list[tuple[str, Any]]) -> dict[str, Any]:
        pairs[:] = of_object  # the outermost object is closed last
        return dict(of_object)

    try:
        value, end = json.JSONDecoder(object_pairs_hook=remember).raw_decode(before + tail)
    except (ValueError, RecursionError):
        return TextAfterEvents(TopLevelKeys(members(tail)), (), "", "", bool(tail.strip(_NOTHING)))
    text, left_out = tail[: end - len(before)], tail[end - len(before) :]
    lists = [value for key, value in pairs if key == "traceEvents" and isinstance(value, list)]
    return TextAfterEvents(TopLevelKeys(value), lists, tail if left_out.isspace() else text, left_out.strip(_NOTHING))


def _strictly(text: str | bytes) -> TopLevelKeys | None:
    """Return the members of an object that strict readers accept; None for any other text."""
    try:
        raw = _MEMBERS.decode(text)
        return TopLevelKeys({key: v if len(v) >= _LONG else msgspec.json.decode(v) for key, v in raw.items()})
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _parse(text: msgspec.Raw) -> Any:
    """Return the value of a JSON text; None if a number in it is unreadable, or it is nested too deep."""
    with contextlib.suppress(msgspec.MsgspecError, ValueError, RecursionError):
        return msgspec.json.decode(text)
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(bytes(text))
    return None
