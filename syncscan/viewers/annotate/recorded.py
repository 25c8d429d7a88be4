"""Write a recording's slices as events of a Chrome trace, where its file is a database and has no such events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from syncscan.model.trace import DEVICE, NONE, Category, Trace, Track
from syncscan.viewers.annotate.lanes import ids_of

_CATEGORIES = {
    Category.CPU_OP: "cpu_op",
    Category.ANNOTATION: "user_annotation",
    Category.RUNTIME: "cuda_runtime",
    Category.DRIVER: "cuda_driver",
    Category.KERNEL: "kernel",
    Category.MEMCPY: "gpu_memcpy",
    Category.MEMSET: "gpu_memset",
    Category.SYNC: "cuda_sync",
    Category.OVERHEAD: "overhead",
    Category.OS_CALL: "os_runtime",
}
"""Names as torch.profiler writes them, by which viewers color slices; it writes no calls of the OS."""
_ARGS = ("correlation", "device", "stream", "bytes")
"""Columns that a click on a slice shows, where it has a value in them."""
_TOGETHER = 4_096
"""Events of one piece of text."""
_encode = msgspec.json.Encoder().encode


class ColumnsText:
    """The events of a trace as text, as `ValidText` has those of a file; without any text in front of them."""

    head = b""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def events(self) -> Iterator[bytes]:
        """Yield the names of all rows, then slice by slice, each with the arrow to the work that it launched."""
        trace, s = self._trace, self._trace.slices
        for number, track in enumerate(trace.tracks):
            yield from map(_encode, _titles(track, trace, number))
        names = [text.encode("utf-8", "replace").decode() for text in trace.strings]
        launched = dict(zip(trace.device_calls.tolist(), trace.device_rows.tolist(), strict=True))
        columns = [getattr(s, name) for name in _ARGS]
        for row in range(len(s)):
            ids = ids_of(trace.tracks[s.track.item(row)])
            args = {name: values.item(row) for name, values in zip(_ARGS, columns, strict=True) if values[row] != NONE}
            begin = s.ts.item(row) / 1e3
            kind = _CATEGORIES[Category(s.category.item(row))]
            whole = {"ph": "X", "cat": kind, "name": names[s.name.item(row)], **ids, "ts": begin}
            yield _encode({**whole, "dur": s.dur.item(row) / 1e3, "args": args})
            work = launched.get(row, NONE)
            if work != NONE and s.ts[work] >= s.ts[row]:
                arrow = {"cat": "ac2g", "name": "ac2g", "id": row}
                yield _encode({"ph": "s", **arrow, **ids, "ts": begin})
                end = {**ids_of(trace.tracks[s.track.item(work)]), "ts": s.ts.item(work) / 1e3, "bp": "e"}
                yield _encode({"ph": "f", **arrow, **end})

    def pieces(self) -> Iterator[bytes]:
        """Yield the text of some events each, with commas between them."""
        events = self.events()
        while some := list(islice(events, _TOGETHER)):
            yield b",\n".join(some)


def _titles(track: Track, trace: Trace, number: int) -> Iterable[dict[str, Any]]:
    """Return the events that name a row and its process; a stream's are those of its device."""
    rows = trace.track_rows(number)
    of_device = bool(np.isin(trace.slices.category[rows], DEVICE).any())
    process = f"GPU {track.pid}" if of_device else track.process or f"process {track.pid}"
    thread = f"stream {track.tid}" if of_device else track.thread or f"thread {track.tid}"
    for kind, name in (("process_name", process), ("thread_name", thread)):
        yield {"ph": "M", "name": kind, **ids_of(track), "args": {"name": name}}
