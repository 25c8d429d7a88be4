"""From the text before and behind a list of events to the trace's other keys, and to what is no part of the trace."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from syncscan.load.salvage import members
from syncscan.load.split import Head

_NOTHING = " \t\r\n\x00"
"""What may stand behind a trace: lines, and the zeros that pad a block."""


class Ending(msgspec.Struct, frozen=True):
    """What stands behind a list of events.

    `text` goes up to the end of the object around the list, and is empty where that is damaged. `left_out` is what
    stands behind the object, `lists` the further lists of events in it; `damaged` says that the object is.
    """

    members: Mapping[str, Any]
    lists: Sequence[list[Any]]
    text: str
    left_out: str
    damaged: bool = False


def metadata_before(head: Head) -> Mapping[str, Any]:
    """The top-level keys before the list of events, as far as they can be read."""
    if not head.whole:
        found = members(head.text.decode("utf-8", "replace"))
    else:
        found = json.loads(head.text + b"[]}") if head.text else {}
    return _without_events(found)


def ending(tail: str, in_object: bool) -> Ending:
    """The top-level keys behind the list of events, as far as they can be read, and what stands behind the last.

    Args:
        tail: all text behind the list's bracket.
        in_object: whether the list is a member of an object; without one there is nothing to end.
    """
    if not in_object:
        found = members(tail)
        return Ending(found, (), "", "" if found else tail.strip(_NOTHING))
    before = '{"traceEvents": 0'
    if '"traceEvents"' not in tail:  # nearly always; then msgspec reads what strict readers take, in half the time
        with contextlib.suppress(msgspec.MsgspecError, ValueError, RecursionError):
            return Ending(_without_events(msgspec.json.decode(before + tail)), (), tail, "")
    pairs: list[tuple[str, Any]] = []

    def remember(of_object: list[tuple[str, Any]]) -> dict[str, Any]:
        pairs[:] = of_object  # the outermost object is closed last
        return dict(of_object)

    try:
        value, end = json.JSONDecoder(object_pairs_hook=remember).raw_decode(before + tail)
    except (ValueError, RecursionError):
        return Ending(_without_events(members(tail)), (), "", "", bool(tail.strip(_NOTHING)))
    text, left_out = tail[: end - len(before)], tail[end - len(before) :]
    lists = [value for key, value in pairs if key == "traceEvents" and isinstance(value, list)]
    return Ending(_without_events(value), lists, tail if left_out.isspace() else text, left_out.strip(_NOTHING))


def _without_events(found: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in found.items() if key != "traceEvents"}
