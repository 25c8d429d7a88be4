"""Decode a JSON list of events by category, each into the fields that its category has.

Half of a trace with stacks are Python frames, of which only name, place and time are needed, and a tenth are arrows to
kernels, of which nothing is. Lists with anything that kineto doesn't write today are refused and then read by `event`;
both ways lead to the same rows.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, Literal

import msgspec

from syncscan.load.categories import ARROWS, CATEGORIES, PYTHON
from syncscan.load.event import Args, Listed, TraceEvent
from syncscan.load.fields import args_type, fields_of
from syncscan.model.trace import CALLS, Category

Grouped = Mapping[str, Sequence[Any]]
"""Events by category: as `TraceEvent`, or as the category's own type."""

LEFT_OUT = frozenset({"ac2g", "gpu_user_annotation", "cpu_instant_event", "Trace"})
"""Categories that kineto writes and that aren't read here (its ActivityType.h and output_json.cpp)."""


class _Timed(Listed, gc=False, tag_field="cat", tag=""):
    """Fields of all events with a begin and an end."""

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
    """Return the event type of each category, which is its tag."""
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

    Raises:
        msgspec.MsgspecError: it isn't valid JSON, or it contains something unknown, which may be valid.
    """
    events_of: defaultdict[Any, list[Any]] = defaultdict(list)
    for event in _DECODER.decode(text):
        events_of[type(event)].append(event)
    return {_CATEGORY_OF[kind]: events for kind, events in events_of.items()}


def by_category(events: Sequence[TraceEvent]) -> Grouped:
    """Return events of any list by category."""
    events_of: defaultdict[str, list[TraceEvent]] = defaultdict(list)
    for event in events:
        events_of[event.cat].append(event)
    return events_of
