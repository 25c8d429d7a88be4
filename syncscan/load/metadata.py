"""Read the keys of a trace before and after its list of events, and what they say about it.

That is its vendor, devices, rank and options; and what isn't part of the trace.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from syncscan.load.columns import Unlinked
from syncscan.load.fields import id_of, text_of, vendor_of_category
from syncscan.load.salvage import members
from syncscan.load.split import Head
from syncscan.model.capture import capture_table
from syncscan.model.trace import CALLS, DEVICE, NONE, Category, TraceInfo, Vendor, of_categories

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


# ROCm's calls are in the category cuda_runtime too (libkineto's RocprofActivity.h), so names decide.
_CALLS = {
    Vendor.ROCM: re.compile(r"hip[A-Z]|hsa_|roc"),
    Vendor.XPU: re.compile(r"ze[A-Z]|ur[A-Z]|pi[A-Z]|GPU_BARRIER|HOST_(FENCE|EVENT|COMMAND)"),
    Vendor.MTIA: re.compile(r"mtia", re.IGNORECASE),
    Vendor.CUDA: re.compile(r"cuda[A-Z]|cu[A-Z]"),
}
_DROPPED = re.compile(r"Dropped (\d{1,18}) activity records")
"""kineto's own warning when CUPTI ran out of buffers (CuptiActivityApi.cpp); its log is part of the trace."""
_LOGS = ("WARNING", "ERROR")


def trace_info(metadata: Mapping[str, Any], path: str, size: int, raw: Unlinked) -> TraceInfo:
    """Return what the top-level keys and the names of a trace tell about it."""
    distributed = _mapping(metadata.get("distributedInfo"))
    properties = metadata.get("deviceProperties")
    devices = [_mapping(d) for d in properties] if isinstance(properties, list) else []
    names = tuple(text_of(d.get("name")) for d in devices)
    captured, refused = capture_table(metadata.get("syncscan"))
    return TraceInfo(
        path=path,
        size_bytes=size,
        events=raw.events,
        vendor=vendor(raw),
        devices=names,
        compute_capability=_capability(devices[0]) if devices else None,
        rank=_count(distributed.get("rank")),
        world_size=_count(distributed.get("world_size")),
        base_ns=max(id_of(metadata.get("baseTimeNanoseconds")), 0),
        with_stack=bool(metadata.get("with_stack")),
        record_shapes=bool(metadata.get("record_shapes")),
        dropped=_dropped(metadata),
        capture=captured,
        metadata=metadata,
        warnings=refused,
        drawn=raw.drawn,
    )


def vendor(raw: Unlinked) -> Vendor:
    """Return the device's vendor, by the names of calls, else by categories that one vendor alone has, else CUDA.

    A merged or converted trace may have another's metadata. A trace without device work or calls is `none`, whatever
    the machine has.
    """
    calls = _names(raw, *CALLS, Category.SYNC)
    votes = {v: sum(bool(p.match(n)) for n in calls) for v, p in _CALLS.items()}
    if any(votes.values()):
        return max(votes, key=lambda v: votes[v])
    for category in sorted(raw.categories):
        if vendor_of_category(category):
            return Vendor(vendor_of_category(category))
    return Vendor.CUDA if _names(raw, *DEVICE) else Vendor.NONE


def _names(raw: Unlinked, *categories: Category) -> list[str]:
    there = np.zeros(len(raw.strings), np.bool_)
    there[raw.slices["name"][of_categories(raw.slices["category"], categories)]] = True
    return [raw.strings[i] for i in np.flatnonzero(there).tolist()]


def _capability(device: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return major and minor number of a device's compute capability; None if missing or not a number."""
    major, minor = _count(device.get("computeMajor")), _count(device.get("computeMinor", 0))
    return None if major is None or minor is None else (major, minor)


def _dropped(metadata: Mapping[str, Any]) -> int:
    """Return how many device records the profiler's log reports as lost."""
    logs = (metadata.get(level) for level in _LOGS)
    lines = (line for log in logs if isinstance(log, list) for line in log if isinstance(line, str))
    return sum(int(lost[1]) for line in lines if (lost := _DROPPED.search(line)))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _count(value: Any) -> int | None:
    number = id_of(value)
    return None if number == NONE else number
