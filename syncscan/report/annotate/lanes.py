"""From slices to trace events on rows of our own: pids and tids that nobody else uses, no two slices that overlap."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from syncscan.model.trace import Track
from syncscan.report.annotate.hues import hued
from syncscan.report.names import shown

MAX_NAME, MAX_TEXT = 120, 1000
"""Longest name of a slice, and longest text in its args, in characters: viewers draw rows of names."""
SHORTER = 1
"""By so many ns slices for Perfetto end early: its address names a slice by begin and length, and where a sync is one
call, those are the call's too."""
_FIRST_PID = 4_200_000
"""Above what Linux gives a process or a thread (pid_max is 2**22 = 4,194,304)."""
_FIRST_FLOW = 1 << 40
"""Above the ids of recorded flows, which are 32-bit correlations; below what a JavaScript number holds."""
_encode = msgspec.json.Encoder().encode


class Drawn(msgspec.Struct, frozen=True):
    """One slice to draw: times in ns on the trace's clock, and what a click on it shows."""

    ts: int
    end: int
    name: str
    args: Mapping[str, Any] = msgspec.field(default_factory=dict)
    color: str = ""


class Arrow(msgspec.Struct, frozen=True):
    """A flow from one of our slices to a recorded one: times in ns, `to` the track that it ends on."""

    name: str
    ts: int
    to_ts: int
    to: Track


class Lanes:
    """Hands out the rows of our process and writes what lies on them as JSON text, one event at a time.

    Args:
        tracks: the trace's own, whose ids are avoided.
        perfetto: name rows and slices for Perfetto.
    """

    def __init__(self, tracks: Iterable[Track], perfetto: bool = False) -> None:
        self._perfetto = perfetto
        taken = {i for t in tracks for i in (t.pid, t.tid)}
        self._free = (i for i in range(_FIRST_PID, 2 * _FIRST_PID + len(taken)) if str(i) not in taken)
        self._flows = iter(range(_FIRST_FLOW, 2 * _FIRST_FLOW))
        self.pid = next(self._free)
        self._order = 0

    def process(self, name: str) -> Iterator[bytes]:
        """The name of our process, and that it goes on top."""
        yield _encode(self._label("process_name", self.pid, name=name))
        yield _encode(self._label("process_labels", self.pid, labels="syncscan"))
        yield _encode(self._label("process_sort_index", self.pid, sort_index=-1))

    def row(self, name: str, cat: str, slices: Iterable[Drawn], arrows: Iterable[Arrow] = ()) -> Iterator[bytes]:
        """One row, and further ones with the same name for the slices that overlap on it.

        Args:
            name: shown beside the row.
            cat: category of its slices; TensorBoard refuses a slice without one.
            slices: what lies on it, in any order.
            arrows: flows that start on slices of this row.
        """
        lanes = _lanes(sorted(slices, key=lambda s: (s.ts, -s.end)))
        starts = sorted(arrows, key=lambda a: a.ts)
        for number, lane in enumerate(lanes):
            tid, self._order = next(self._free), self._order + 1
            numbered = name if not number else f"{name} ({number + 1})"
            yield _encode(self._label("thread_name", tid, name=self._row_name(numbered)))
            yield _encode(self._label("thread_sort_index", tid, sort_index=self._order))
            yield from (_encode(self._slice(s, cat, tid)) for s in lane)
            yield from self._arrows(starts, lane, tid)

    def _arrows(self, arrows: list[Arrow], lane: list[Drawn], tid: int) -> Iterator[bytes]:
        starting = {s.ts: s for s in lane}
        for a in arrows:
            at = starting.get(a.ts)
            if at is None:
                continue
            flow = {"cat": "syncscan", "name": shown(a.name, MAX_NAME), "id": next(self._flows)}
            leaves = min((at.ts + at.end) // 2, a.to_ts)
            yield _encode({"ph": "s", "pid": self.pid, "tid": tid, "ts": leaves / 1000, **flow})
            there = {"pid": _number(a.to.pid), "tid": _number(a.to.tid), "ts": a.to_ts / 1000}
            yield _encode({"ph": "f", "bp": "e", **there, **flow})

    def _row_name(self, name: str) -> str:
        """For Perfetto it begins with a slash, which the empty groups around rows leave out: they aren't pinned."""
        return f"/{name}" if self._perfetto else name

    def _slice(self, s: Drawn, cat: str, tid: int) -> dict[str, Any]:
        name = _named(s.name)
        name = hued(name, s.color) if self._perfetto else name
        length = max(s.end - s.ts - (SHORTER if self._perfetto else 0), 0)
        event: dict[str, Any] = {"ph": "X", "cat": cat, "name": name, "pid": self.pid, "tid": tid}
        event["ts"], event["dur"] = s.ts / 1000, length / 1000
        if s.color:
            event["cname"] = s.color
        event["args"] = _clean(s.args)
        return event

    def _label(self, kind: str, tid: int, **args: Any) -> dict[str, Any]:
        return {"ph": "M", "name": kind, "pid": self.pid, "tid": tid, "ts": 0, "args": _clean(args)}


def _lanes(slices: Iterable[Drawn]) -> list[list[Drawn]]:
    """Spread slices, sorted by start, over as few lanes as keep them apart."""
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
    """How far two slices must stay apart, in ns, so that they don't overlap once µs are 64-bit floats."""
    return 2 * math.ceil(math.ulp(ts / 1000) * 1000)


def _clean(args: Mapping[str, Any]) -> dict[str, Any]:
    return {k: _said(v) if isinstance(v, str) else v for k, v in args.items()}


@lru_cache(1 << 12)  # a hundred thousand slices have few different texts
def _said(text: str) -> str:
    return shown(text, MAX_TEXT)


@lru_cache(1 << 12)
def _named(name: str) -> str:
    return shown(name, MAX_NAME) or "?"


def _number(text: str) -> int | str:
    """A pid or tid as the trace has it: the model keeps them as text."""
    if text.isascii() and text.removeprefix("-").isdecimal():
        return int(text)
    return text.encode("utf-8", "replace").decode()
