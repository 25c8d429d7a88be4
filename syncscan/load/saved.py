"""Read the linked Trace of a saved analysis."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import numpy as np

from syncscan.errors import TraceTooLarge, TraceUnreadable, UsageError
from syncscan.load.byte_stream import ByteStream, open_bytes
from syncscan.load.columns import FRAME_COLUMNS, TYPES, Unlinked
from syncscan.load.damage import Damage
from syncscan.load.databases import is_database, named_as_report, process_in
from syncscan.load.fields import LONGEST_US
from syncscan.load.link import linked_trace
from syncscan.load.memory_check import EVENT_BYTES
from syncscan.load.metadata import trace_info
from syncscan.model.arrays import distinct
from syncscan.model.process_group import group_of
from syncscan.model.saved import VERSION, Packed, Saved, SavedTrace, StoredContext, unpacked
from syncscan.model.trace import NONE, Category, Flows, Trace, Vendor

_NAME = re.compile(r".+\.syncscan\.json(\.(gz|zst|xz|bz2))?", re.IGNORECASE)
_BEGIN = re.compile(rb'\s*\{\s*"schema"\s*:\s*"syncscan\.')
PEEK = 256
"""Bytes that distinguish our documents from traces."""
_TEXT_TAKES = 4
"""Memory per byte of text while it is decoded: the text, the document, and the columns."""
_AGAIN = "Save it again, with `syncscan analyze TRACE -o NAME.syncscan.json`."
_FLOW_TYPES = {"from_track": np.int32, "from_ts": np.int64, "to_track": np.int32, "to_ts": np.int64}
_FRAME_TYPES = {name: TYPES[name] for name in FRAME_COLUMNS}
_LONGEST = int(LONGEST_US) * 1000


def named_as_saved(name: str) -> bool:
    """Return whether a file of this name is a saved analysis: `NAME.syncscan.json`, compressed or not."""
    return _NAME.fullmatch(name) is not None


def is_saved(begin: bytes) -> bool:
    """Return whether a text with this begin is one of our documents rather than a trace."""
    return _BEGIN.match(begin) is not None


def has_events(path: str) -> bool:
    """Return whether a trace is a text of events, unlike a database."""
    if named_as_report(path):
        return False
    with open_bytes(process_in(path)[0]) as stream:
        return not is_database(stream.peek(PEEK))


def open_events(path: str) -> ByteStream:
    """Open a trace whose events are needed, which a saved analysis doesn't have as recorded."""
    if named_as_report(path):
        raise _not_events(path, "a report of Nsight Systems", "a trace of torch.profiler")
    stream = open_bytes(process_in(path)[0])
    begin = stream.peek(PEEK)
    if is_saved(begin):
        stream.close()
        raise _not_events(path, "a saved analysis", "the original trace")
    if is_database(begin):
        stream.close()
        raise _not_events(path, "an export of Nsight Systems", "a trace of torch.profiler")
    return stream


def _not_events(path: str, what: str, instead: str) -> UsageError:
    return UsageError(f"{path} is {what}, but this needs the recorded events as a Chrome trace.", f"Give {instead}.")


def read_saved(stream: ByteStream, name: str, most: int | None) -> Trace:
    try:
        saved = _read_rest(_text(stream, name, most), name)
        require(saved.trace, name, most)
        source_record = StoredContext(asked=saved.asked, sources=saved.sources, newer=saved.newer)
        trace = linked(saved.trace)
        return msgspec.structs.replace(trace, info=msgspec.structs.replace(trace.info, stored=source_record))
    except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError) as e:
        if stream.lost:
            raise TraceUnreadable(f"{name} can't be read: {stream.lost}", "Copy or save it again.") from None
        raise TraceUnreadable(f"{name} is a damaged saved analysis: {_reason(e)}.", _AGAIN) from None


def _text(stream: ByteStream, name: str, most: int | None) -> bytes:
    text, longest = bytearray(), None if most is None else most // _TEXT_TAKES
    while piece := stream.read(1 << 20):
        text += piece
        if longest is not None and len(text) > longest:
            raise _too_large(name)
    return bytes(text)


def _too_large(name: str) -> TraceTooLarge:
    return TraceTooLarge(f"{name} doesn't fit into memory.", "Allow more with --max-memory.")


def _read_rest(text: bytes, name: str) -> Saved:
    document = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    schema = msgspec.json.decode(document["schema"], type=str)
    if schema != "syncscan.analysis/2" or "saved" not in document:
        raise TraceUnreadable(f"{name} is a report ({schema}) without the trace.", _AGAIN)
    stored = msgspec.json.decode(document["saved"], type=dict[str, msgspec.Raw])
    if "version" not in stored:
        raise ValueError("it has no version")
    version = msgspec.json.decode(stored["version"], type=int)
    if version != VERSION:
        why = f"{name} was saved by another syncscan: its version is {version}, and this one reads {VERSION}."
        raise TraceUnreadable(why, _AGAIN)
    return msgspec.json.decode(document["saved"], type=Saved)


def require(saved: SavedTrace, name: str, most: int | None) -> None:
    rows = saved.slices.rows + saved.frames.rows + saved.flows.rows
    if most is not None and rows * EVENT_BYTES > most:
        raise _too_large(name)


def linked(saved: SavedTrace) -> Trace:
    """Link the trace again, so that what follows from the columns is computed rather than trusted.

    A `ValueError` says that its columns aren't those of a trace.
    """
    raw = _unlinked(saved)
    info = trace_info(saved.metadata, saved.path, saved.size_bytes, raw)
    trace = linked_trace(info, raw, Damage())
    info = msgspec.structs.replace(
        trace.info,
        vendor=Vendor(saved.vendor),
        warnings=saved.warnings,
        complete=saved.complete,
    )
    return msgspec.structs.replace(trace, info=info)


def _unlinked(saved: SavedTrace) -> Unlinked:
    slices = _columns(saved, saved.slices, TYPES)
    _require_groups(saved, slices["group"])
    if not np.isin(slices["category"], np.array(list(Category), np.int8)).all():
        raise ValueError("a slice has no category")
    frames = _columns(saved, saved.frames, _FRAME_TYPES)
    flows = _columns(saved, saved.flows, _FLOW_TYPES)
    return Unlinked(
        strings=saved.strings,
        tracks=list(saved.tracks),
        slices=slices,
        frames=frames,
        flows=Flows(**flows),
        events=saved.events,
        categories=frozenset(),
    )


def _columns(saved: SavedTrace, stored: Packed, types: dict[str, Any]) -> dict[str, Any]:
    """Return the columns with each number checked against its range."""
    columns = unpacked(stored, types)
    limits = {"name": len(saved.strings), "track": len(saved.tracks)}
    limits |= {"from_track": limits["track"], "to_track": limits["track"]}
    for name, column in columns.items():
        if name in limits and not _within(column, 0, limits[name] - 1):
            raise ValueError(f"a {name} isn't one of those it lists")
        if name.endswith("ts") and not _within(column, -_LONGEST, _LONGEST):
            raise ValueError("a time is none")
        if name == "dur" and not _within(column, 0, _LONGEST):
            raise ValueError("a duration is none")
    return columns


def _require_groups(saved: SavedTrace, group: Any) -> None:
    if not _within(group, NONE, len(saved.strings) - 1):
        raise ValueError("a group isn't one of those it lists")
    for number in distinct(group[group != NONE]).tolist():
        group_of(saved.strings[number])


def _within(column: Any, least: int, most: int) -> bool:
    return not len(column) or bool(column.min() >= least and column.max() <= most)


def _reason(error: Exception) -> str:
    text = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
    return json.dumps(text)[1:-1].replace('\\"', "'").rstrip(".")[:200]
