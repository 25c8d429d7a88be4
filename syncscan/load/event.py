"""One event as the typed decoder sees it: the fields that the analysis needs and nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from syncscan.load.conversions import id_of, number_of, text_of
from syncscan.load.fields import FIELDS, args_type
from syncscan.model.trace import NONE


class Args(args_type("_Fields", FIELDS)):  # type: ignore[misc]
    """The fields of an event's `args` that are read: those with a column, and these."""

    number: int = msgspec.field(default=NONE, name="Seq")
    source_rank: int = msgspec.field(default=NONE, name="Src Rank")
    target_rank: int = msgspec.field(default=NONE, name="Dst Rank")
    group: Any = msgspec.field(default=None, name="Process Group Name")
    ranks: Any = msgspec.field(default=None, name="Process Group Ranks")
    label: str = msgspec.field(default="", name="name")
    grid: Any = None
    direction: Any = msgspec.field(default=None, name="copy kind")
    source: Any = msgspec.field(default=None, name="src kind")
    target: Any = msgspec.field(default=None, name="dst kind")


NO_ARGS = Args()


class Listed(msgspec.Struct, gc=False, kw_only=True):
    """Base of all events, which refuses a list in which the key of the list itself occurs in an event.

    Such a list is read event by event, since a text with a key twice in an object isn't
    copied unchanged.
    """

    traceEvents: Annotated[int, msgspec.Meta(ge=1, le=0)] = NONE


class TraceEvent(Listed, gc=False):
    """One entry of `traceEvents`; `ts` and `dur` in µs, nan if missing; missing texts are empty."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str = ""
    tid: int | str = ""
    ts: float = math.nan
    dur: float = math.nan
    args: Args = NO_ARGS
    id: int | str | None = None


DECODER = msgspec.json.Decoder(list[TraceEvent], strict=False)
"""Reads a JSON list of events; accepts numbers as text, refuses null and other unexpected types."""

_TEXT = ("ph", "cat", "name")
_IDS = {f.name: f.encode_name for f in msgspec.structs.fields(Args) if f.type is int}


def event_of(fields: Mapping[str, Any]) -> TraceEvent:
    """Return the event of a JSON object with fields of any type; unusable fields are left out."""
    args = fields.get("args")
    texts: dict[str, Any] = {
        name: text_of(fields[name]) for name in _TEXT if isinstance(fields.get(name), str | int | float)
    }
    return TraceEvent(
        **texts,
        pid=_key(fields.get("pid")),
        tid=_key(fields.get("tid")),
        ts=number_of(fields.get("ts")),
        dur=number_of(fields.get("dur")),
        args=_args(args) if isinstance(args, Mapping) else NO_ARGS,
        id=None if fields.get("id") is None else _key(fields["id"]),
    )


def _args(args: Mapping[str, Any]) -> Args:
    ids = {name: id_of(args.get(key)) for name, key in _IDS.items()}
    return Args(
        **ids,
        group=args.get("Process Group Name"),
        ranks=args.get("Process Group Ranks"),
        label=text_of(args.get("name")),
        grid=args.get("grid"),
        direction=args.get("copy kind"),
        source=args.get("src kind"),
        target=args.get("dst kind"),
    )


def _key(value: Any) -> int | str:
    """Return a pid, tid or flow id: the value itself, as text if it is neither text nor an integer."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return text_of(value)
