"""Decode a JSON list of events into the fields that the analysis needs and nothing else."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

import msgspec

from syncscan.load.fields import ARROWS, CATEGORIES, FIELDS, PYTHON, args_type, fields_of, id_of, number_of, text_of
from syncscan.model.trace import CALLS, NONE, Category


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


Grouped = Mapping[str, Sequence[Any]]
"""Events by category: as `TraceEvent`, or as the category's own type."""

LEFT_OUT = frozenset({"ac2g", "gpu_user_annotation", "cpu_instant_event", "Trace"})
"""Categories that kineto writes and that aren't read here (its ActivityType.h and output_json.cpp)."""


class _Timed(Listed, gc=False, tag_field="cat", tag=""):
    ph: Literal["X"]
    name: str = ""
    pid: int | str = ""
    tid: int | str = ""
    ts: float = math.nan
    dur: float = math.nan


class _Arrow(Listed, gc=False, tag_field="cat", tag=""):
    ph: Literal["s", "f"]
    id: int | str | None = None
    pid: int | str = ""
    tid: int | str = ""
    ts: float = math.nan


class _LeftOut(Listed, gc=False, tag_field="cat", tag=""):
    ph: Literal["X", "s", "f", "i"]


_FEW = (Category.CPU_OP, Category.ANNOTATION, *CALLS)
"""Categories with many events and few fields."""


def _types() -> dict[type, str]:
    types = {_type(_Timed, PYTHON): PYTHON}
    types |= {_type(_Arrow, name): name for name in ARROWS} | {_type(_LeftOut, name): name for name in LEFT_OUT}
    args = {category: args_type(f"_ArgsOf{category.name}", fields_of(category)) for category in _FEW}
    for name, category in CATEGORIES.items():
        kind = args.get(category, Args)
        types[_type(_Timed, name, ("args", kind, kind()))] = name
    return types


def _type(base: type, name: str, *fields: tuple[str, Any, Any]) -> type:
    return msgspec.defstruct(f"Of_{name}", fields, bases=(base,), tag=name, gc=False)


_CATEGORY_OF = _types()
_DECODER = msgspec.json.Decoder(list[reduce(or_, _CATEGORY_OF)], strict=False)  # type: ignore[misc]


def typed_events(text: bytes | memoryview) -> Grouped:
    """Return the events of a JSON list by category, in order of appearance.

    Raises a `MsgspecError` also for something unknown, which may be valid.
    """
    events_of: defaultdict[Any, list[Any]] = defaultdict(list)
    for event in _DECODER.decode(text):
        events_of[type(event)].append(event)
    return {_CATEGORY_OF[kind]: events for kind, events in events_of.items()}


def by_category(events: Sequence[TraceEvent]) -> Grouped:
    events_of: defaultdict[str, list[TraceEvent]] = defaultdict(list)
    for event in events:
        events_of[event.cat].append(event)
    return events_of
