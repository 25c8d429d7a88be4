"""Write a linked Trace, such as from a saved analysis, as the text of a trace: slices, frames and arrows.

What neither the analysis nor a report reads is missing: other arguments, and short Python frames of a big trace.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from syncscan.load.categories import CATEGORIES, PYTHON
from syncscan.model.trace import DEVICE, NONE, Category, Trace, Track

_NAMES = {category: name for name, category in reversed(CATEGORIES.items())}
"""Category → its first name in the table, which is the current one on CUDA."""
_ARROW = "fwdbwd"


def events_text(trace: Trace) -> bytes:
    """Return the JSON of the trace, with its metadata.

    Args:
        trace: trace of any vendor; calls and kernels get CUDA's category names.
    """
    metadata = {key: value for key, value in trace.info.metadata.items() if key != "traceEvents"}
    events = [*_labels(trace), *_slices(trace), *_frames(trace), *_arrows(trace)]
    return json.dumps({**metadata, "traceEvents": events}, allow_nan=False).encode()


def _place(track: Track) -> dict[str, Any]:
    return {key: int(text) if text.isdecimal() else text for key, text in (("pid", track.pid), ("tid", track.tid))}


def _labels(trace: Trace) -> Iterator[dict[str, Any]]:
    for track in trace.tracks:
        for kind, label in (("process_name", track.process), ("thread_name", track.thread)):
            if label:
                yield {"ph": "M", "name": kind, **_place(track), "ts": 0, "args": {"name": label}}


def _slices(trace: Trace) -> Iterator[dict[str, Any]]:
    s = trace.slices
    for row, (code, ts, dur, track) in enumerate(
        zip(s.category.tolist(), s.ts.tolist(), s.dur.tolist(), s.track.tolist(), strict=True)
    ):
        category = Category(code)
        yield {
            "ph": "X",
            "cat": _NAMES[category],
            "name": trace.name(row),
            **_place(trace.tracks[track]),
            "ts": ts / 1e3,
            "dur": dur / 1e3,
            "args": _args(trace, row, category in DEVICE or category is Category.SYNC),
        }


def _args(trace: Trace, row: int, on_device: bool) -> dict[str, Any]:
    s = trace.slices
    columns: dict[str, Any] = {"correlation": s.correlation, "External id": s.external, "bytes": s.bytes}
    if on_device:
        columns |= {"device": s.device, "stream": s.stream}
    else:
        columns |= {"Sequence number": s.sequence, "Fwd thread id": s.fwd_thread}
    grid = {"grid": [int(s.blocks[row]), 1, 1]} if s.blocks[row] != NONE else {}
    return {name: int(column[row]) for name, column in columns.items() if column[row] != NONE} | grid


def _frames(trace: Trace) -> Iterator[dict[str, Any]]:
    f = trace.drawn_frames
    for name, track, ts, dur in zip(f.name.tolist(), f.track.tolist(), f.ts.tolist(), f.dur.tolist(), strict=True):
        place = _place(trace.tracks[track])
        yield {
            "ph": "X",
            "cat": PYTHON,
            "name": trace.strings[name],
            **place,
            "ts": ts / 1e3,
            "dur": dur / 1e3,
            "args": {},
        }


def _arrows(trace: Trace) -> Iterator[dict[str, Any]]:
    f = trace.flows
    ends = zip(f.from_track.tolist(), f.from_ts.tolist(), f.to_track.tolist(), f.to_ts.tolist(), strict=True)
    for number, (from_track, from_ts, to_track, to_ts) in enumerate(ends, 1):
        arrow = {"cat": _ARROW, "name": _ARROW, "id": number}
        yield {"ph": "s", **arrow, **_place(trace.tracks[from_track]), "ts": from_ts / 1e3}
        yield {"ph": "f", **arrow, **_place(trace.tracks[to_track]), "ts": to_ts / 1e3, "bp": "e"}
