"""Turn slices into trace events on rows whose pids and tids nobody else uses, without overlaps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np

from syncscan.model.arrays import Int64
from syncscan.model.duration import duration
from syncscan.model.trace import Track
from syncscan.report.printable import shown
from syncscan.viewers.annotate.idle import IdleTimes

MAX_NAME, MAX_TEXT = 120, 1000
"""Longest name of a slice and longest text in its args, in characters."""
SHORTER = 1
"""Nanoseconds by which slices for Perfetto end early. Perfetto addresses a slice by begin and length; without this, a
sync of one call would share them with the call."""
_FIRST_PID = 4_200_000
"""First process id: above what Linux assigns to a process or thread (pid_max is 2**22 = 4,194,304)."""
_FIRST_FLOW = 1 << 40
"""First flow id: above recorded flows, which are 32-bit correlation ids, and below the largest exact JavaScript
integer."""
_GAP = msgspec.Raw(b"\0")
"""Placeholder for numbers in an event's text, which doesn't contain that byte otherwise."""
_encode = msgspec.json.Encoder().encode


class Drawn(msgspec.Struct, frozen=True):
    """A slice to draw: times in ns on the trace's clock, and the args that a click shows."""

    ts: int
    end: int
    name: str
    args: Mapping[str, Any] = msgspec.field(default_factory=dict)
    color: str = ""


Arrows = Mapping[int, tuple[int, Track]]
"""Begin of an added slice that is a sync → begin and track of the launch that it delayed; times in ns."""


class AddedLanes:
    """Allocates rows of syncscan's process and yields what lies on them as JSON text, event by event.

    The ids of the trace's `tracks` are avoided; `perfetto` names rows and slices for Perfetto.
    """

    def __init__(self, tracks: Iterable[Track], perfetto: bool = False) -> None:
        self._perfetto, self._shorter = perfetto, SHORTER if perfetto else 0
        taken = {i for t in tracks for i in (t.pid, t.tid)}
        self._free = (i for i in range(_FIRST_PID, 2 * _FIRST_PID + len(taken)) if str(i) not in taken)
        self._flows = iter(range(_FIRST_FLOW, 2 * _FIRST_FLOW))
        self.pid = next(self._free)
        self._order = 0

    def process(self, name: str) -> Iterator[bytes]:
        """Yield the metadata that names syncscan's process and sorts it to the top."""
        yield _encode(self._label("process_name", self.pid, name=name))
        yield _encode(self._label("process_labels", self.pid, labels="syncscan"))
        yield _encode(self._label("process_sort_index", self.pid, sort_index=-1))

    def row_apart(self, name: str, cat: str, times: IdleTimes, kinds: Sequence[Drawn]) -> Iterator[bytes]:
        """Yield one row of idle times; each looks like the drawing of its cause and shows its length."""
        tid, begin = next(self._free), times.begin
        yield from self._titles(name, tid)
        starts = [ts / 1000 for ts in begin.tolist()]  # numpy rounds an int64 before it divides it, Python behind that
        gaps = 2 * np.ceil(np.spacing(np.abs(starts)) * 1000).astype(np.int64)  # as `_rounding`
        ends = np.append(np.maximum(begin[:-1], np.minimum(times.end[:-1], begin[1:] - gaps[1:])), times.end[-1:])
        lengths = np.maximum(ends - begin - self._shorter, 0)
        around = [self._around_times(kind, cat, tid) for kind in kinds]
        durations = _durations(times.end - begin)
        for kind, start, lasting, length in zip(
            times.cause.tolist(), starts, (lengths / 1000).tolist(), durations, strict=True
        ):
            before, between, behind, end = around[kind]
            yield f'{before}{start!r}{between}{lasting!r}{behind}"{length}"{end}'.encode()

    def _around_times(self, kind: Drawn, cat: str, tid: int) -> list[str]:
        """Return the text of a slice of this kind, split where its start, duration and displayed length belong."""
        event = self._slice(kind, cat, tid)
        event |= {"ts": _GAP, "dur": _GAP, "args": {"length": _GAP, **event["args"]}}
        return _encode(event).decode().split("\0")

    def row(
        self, name: str, cat: str, slices: Iterable[Drawn], arrows: Mapping[int, tuple[int, Track]] = {}
    ) -> Iterator[bytes]:
        """Yield one row, and further rows of the same name for slices that overlap; the slices may come in any order.

        TensorBoard refuses a slice without a category.
        """
        lanes = _lanes(sorted(slices, key=lambda s: (s.ts, -s.end)))
        for number, lane in enumerate(lanes):
            tid = next(self._free)
            yield from self._titles(name if not number else f"{name} ({number + 1})", tid)
            yield from (_encode(self._slice(s, cat, tid)) for s in lane)
            yield from self._arrows(arrows, lane, tid)

    def _titles(self, name: str, tid: int) -> Iterator[bytes]:
        self._order += 1
        yield _encode(self._label("thread_name", tid, name=self._row_name(name)))
        yield _encode(self._label("thread_sort_index", tid, sort_index=self._order))

    def _arrows(self, arrows: Arrows, lane: list[Drawn], tid: int) -> Iterator[bytes]:
        for s in lane:
            if s.ts not in arrows:
                continue
            to_ts, to = arrows[s.ts]
            flow = {"cat": "syncscan", "name": "delayed by a sync", "id": next(self._flows)}
            leaves = min((s.ts + s.end) // 2, to_ts)
            yield _encode({"ph": "s", "pid": self.pid, "tid": tid, "ts": leaves / 1000, **flow})
            yield _encode({"ph": "f", "bp": "e", **ids_of(to), "ts": to_ts / 1000, **flow})

    def _row_name(self, name: str) -> str:
        """Return the name of a row; in Perfetto a leading slash keeps empty groups around it from being pinned."""
        return f"/{name}" if self._perfetto else name

    def _slice(self, s: Drawn, cat: str, tid: int) -> dict[str, Any]:
        length = max(s.end - s.ts - self._shorter, 0)
        event: dict[str, Any] = {"ph": "X", "cat": cat, "name": _name_row(s.name), "pid": self.pid, "tid": tid}
        event["ts"], event["dur"] = s.ts / 1000, length / 1000
        if s.color:
            event["cname"] = s.color
        event["args"] = _clean(s.args)
        return event

    def _label(self, kind: str, tid: int, **args: Any) -> dict[str, Any]:
        return {"ph": "M", "name": kind, "pid": self.pid, "tid": tid, "ts": 0, "args": _clean(args)}


def _lanes(slices: Iterable[Drawn]) -> list[list[Drawn]]:
    lanes: list[list[Drawn]] = []
    for s in slices:
        gap = _rounding(s.ts)
        lane = next((x for x in lanes if x[-1].end <= s.ts), None)
        if lane is None:
            lanes.append([s])
            continue
        before = lane[-1]
        if before.end > s.ts - gap:
            lane[-1] = Drawn(before.ts, max(before.ts, s.ts - gap), before.name, before.args, before.color)
        lane.append(s)
    return lanes


def _rounding(ts: int) -> int:
    """Return the distance in ns that keeps two slices disjoint after rounding to µs in 64-bit floats."""
    return 2 * math.ceil(math.ulp(ts / 1000) * 1000)


def _clean(args: Mapping[str, Any]) -> dict[str, Any]:
    return {k: _short_text(v) if isinstance(v, str) else v for k, v in args.items()}


@lru_cache(1 << 12)  # a hundred thousand slices have few different texts
def _short_text(text: str) -> str:
    return shown(text, MAX_TEXT)


@lru_cache(1 << 12)
def _name_row(name: str) -> str:
    return shown(name, MAX_NAME) or "?"


def _durations(lengths: Int64) -> Iterator[str]:
    distinct, which = np.unique(lengths, return_inverse=True)
    words = [duration(ns / 1000) for ns in distinct.tolist()]
    return map(words.__getitem__, which.tolist())


def ids_of(track: Track) -> dict[str, int | str]:
    return {"pid": _number(track.pid), "tid": _number(track.tid)}


def _number(text: str) -> int | str:
    """Return a pid or tid as the trace wrote it; the model stores them as text."""
    if text.isascii() and text.removeprefix("-").isdecimal():
        return int(text)
    return text.encode("utf-8", "replace").decode()
