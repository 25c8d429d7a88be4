"""One event as the typed decoder sees it: the fields that the analysis needs and nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from syncscan.load.values import id_of, number_of, text_of
from syncscan.model.trace import NONE


class Args(msgspec.Struct, gc=False, frozen=True):
    """What is read of an event's `args`; each field is named as in `categories.ARGS`, where it has a column."""

    correlation: int | None = NONE
    external: int | None = msgspec.field(default=NONE, name="External id")
    external_old: int | None = msgspec.field(default=NONE, name="external id")
    sequence: int | None = msgspec.field(default=NONE, name="Sequence number")
    fwd_thread: int | None = msgspec.field(default=NONE, name="Fwd thread id")
    device: int | None = NONE
    stream: int | None = NONE
    bytes: int | None = NONE
    copy_kind: int | None = msgspec.field(default=NONE, name="kind")
    awaits: int | None = msgspec.field(default=NONE, name="wait_on_cuda_event_record_corr_id")
    label: str | None = msgspec.field(default="", name="name")
    direction: Any = msgspec.field(default=None, name="copy kind")
    source: Any = msgspec.field(default=None, name="src kind")
    target: Any = msgspec.field(default=None, name="dst kind")


NO_ARGS = Args()


class Event(msgspec.Struct, gc=False):
    """One entry of `traceEvents`; `ts` and `dur` in µs, nan where they are missing."""

    ph: str | None = None
    cat: str | None = None
    name: str | None = None
    pid: int | str | None = None
    tid: int | str | None = None
    ts: float | None = math.nan
    dur: float | None = math.nan
    args: Args | None = NO_ARGS
    id: int | str | None = None


DECODER = msgspec.json.Decoder(list[Event], strict=False)
"""Reads a JSON list of events; numbers that stand there as text are taken as numbers."""

_TEXT = ("ph", "cat", "name")
_IDS = {f.name: f.encode_name for f in msgspec.structs.fields(Args) if f.type == int | None}


def event_of(fields: Mapping[str, Any]) -> Event:
    """The event of a JSON object whose fields may be of any type; what can't be used is left out."""
    args = fields.get("args")
    return Event(
        **{name: text_of(fields[name]) for name in _TEXT if isinstance(fields.get(name), str | int | float)},
        pid=_key(fields.get("pid")),
        tid=_key(fields.get("tid")),
        ts=number_of(fields.get("ts")),
        dur=number_of(fields.get("dur")),
        args=_args(args) if isinstance(args, Mapping) else NO_ARGS,
        id=_key(fields.get("id")),
    )


def _args(args: Mapping[str, Any]) -> Args:
    ids = {name: id_of(args.get(key)) for name, key in _IDS.items()}
    return Args(
        **ids,
        label=text_of(args.get("name")),
        direction=args.get("copy kind"),
        source=args.get("src kind"),
        target=args.get("dst kind"),
    )


def _key(value: Any) -> int | str | None:
    """A pid, tid or flow id: what stands there, as text if it is neither text nor an integer."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return text_of(value)
