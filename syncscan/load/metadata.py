"""From the text before and behind a list of events to the trace's other keys, and to what is no part of the trace."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from syncscan.load.salvage import members
from syncscan.load.split import Head

_NOTHING = " \t\r\n\x00"
"""What may stand behind a trace: lines, and the zeros that pad a block."""
_LONG = 64 << 10
"""Characters from which a value isn't parsed before somebody asks for it: other writers put lists of samples there, of
which nothing is used, and values take 15 times as long as looking where they end."""
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Members(Mapping[str, Any]):
    """The top-level keys of a trace but for its events, with their values; a long one is parsed once it is asked for.

    Args:
        values: each as parsed JSON, or as text.
    """

    def __init__(self, values: Mapping[str, Any | msgspec.Raw]) -> None:
        self._values = {key: value for key, value in values.items() if key != "traceEvents"}

    def __getitem__(self, key: str) -> Any:
        value = self._values[key]
        if isinstance(value, msgspec.Raw):
            value = self._values[key] = _parsed(value)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(dict(self))

    def __or__(self, others: Members) -> Members:
        """These and others; of the same key the others' counts."""
        return Members(self._values | others._values)


class Ending(msgspec.Struct, frozen=True):
    """What stands behind a list of events.

    `text` goes up to the end of the object around the list, and is empty where that is damaged. `left_out` is what
    stands behind the object, `lists` the further lists of events in it; `damaged` says that the object is.
    """

    members: Members
    lists: Sequence[list[Any]]
    text: str
    left_out: str
    damaged: bool = False


def metadata_before(head: Head) -> Members:
    """The top-level keys before the list of events, as far as they can be read."""
    if not head.whole:
        return Members(members(head.text.decode("utf-8", "replace")))
    if not head.text:
        return Members({})
    text = head.text + b"[]}"
    found = _strictly(text)
    return Members(json.loads(text)) if found is None else found


def ending(tail: str, in_object: bool) -> Ending:
    """The top-level keys behind the list of events, as far as they can be read, and what stands behind the last.

    Args:
        tail: all text behind the list's bracket.
        in_object: whether the list is a member of an object; without one there is nothing to end.
    """
    if not in_object:
        found = members(tail)
        return Ending(Members(found), (), "", "" if found else tail.strip(_NOTHING))
    before = '{"traceEvents": 0'
    if '"traceEvents"' not in tail and (strictly := _strictly(before + tail)) is not None:  # nearly always
        return Ending(strictly, (), tail, "")
    pairs: list[tuple[str, Any]] = []

    def remember(of_object: list[tuple[str, Any]]) -> dict[str, Any]:
        pairs[:] = of_object  # the outermost object is closed last
        return dict(of_object)

    try:
        value, end = json.JSONDecoder(object_pairs_hook=remember).raw_decode(before + tail)
    except (ValueError, RecursionError):
        return Ending(Members(members(tail)), (), "", "", bool(tail.strip(_NOTHING)))
    text, left_out = tail[: end - len(before)], tail[end - len(before) :]
    lists = [value for key, value in pairs if key == "traceEvents" and isinstance(value, list)]
    return Ending(Members(value), lists, tail if left_out.isspace() else text, left_out.strip(_NOTHING))


def _strictly(text: str | bytes) -> Members | None:
    """The members of an object that strict readers take; None for any other text."""
    try:
        raw = _MEMBERS.decode(text)
        return Members({key: v if len(v) >= _LONG else msgspec.json.decode(v) for key, v in raw.items()})
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _parsed(text: msgspec.Raw) -> Any:
    """The value of a text that is JSON; None for one with a number that is none's, or nested too deep."""
    with contextlib.suppress(msgspec.MsgspecError, ValueError, RecursionError):
        return msgspec.json.decode(text)
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(bytes(text))
    return None
