"""The simplest reader, with `json.loads` and a dict per event: slow, and the reference for the fast one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from syncscan.load.columns import FRAME_COLUMNS, TYPES, Unlinked
from syncscan.load.damage import Damage
from syncscan.load.fields import (
    ARROWS,
    CATEGORIES,
    PYTHON,
    blocks_of,
    copy_name,
    fields_of,
    id_of,
    nanoseconds,
    number_of,
    process_group,
    text_of,
)
from syncscan.load.link import linked_trace
from syncscan.load.metadata import trace_info
from syncscan.model.trace import DRAWN, NONE, Category, Flows, Trace, Track


def parse(text: bytes, path: str = "<bytes>") -> Trace:
    """Read a valid, uncompressed trace.

    Args:
        text: the JSON of the trace, an object with `traceEvents` or a bare list. If the key occurs twice, both
            lists count.
        path: named in the result's `info`.

    Raises:
        ValueError: the text isn't JSON.
    """
    pairs: list[tuple[str, Any]] = []

    def remember(of_object: list[tuple[str, Any]]) -> dict[str, Any]:
        pairs[:] = of_object  # the outermost object is closed last
        return dict(of_object)

    damage = Damage()
    top = json.loads(text, object_pairs_hook=remember)
    if isinstance(top, list):
        metadata, events = {}, top
    else:
        metadata = {key: value for key, value in pairs if key != "traceEvents"}
        lists = [value for key, value in pairs if key == "traceEvents" and isinstance(value, list)]
        events = [event for one in lists for event in one]
        damage.joined = max(0, len(lists) - 1)
    raw = _RowReader(damage).read(events)
    return linked_trace(trace_info(metadata, path, len(text), raw), raw, damage)


class _RowReader:
    def __init__(self, damage: Damage) -> None:
        self.damage = damage
        self.strings: list[str] = []
        self.tracks: list[tuple[str, str]] = []
        self.labels: dict[tuple[str, str], str] = {}
        self.categories: set[str] = set()
        self.drawn = False
        self.slices: list[dict[str, int]] = []
        self.frames: list[dict[str, int]] = []
        self.flow_starts: dict[Any, tuple[int, tuple[str, str]]] = {}
        self.flow_ends: list[tuple[Any, int, int]] = []
        self._numbers: dict[Any, int] = {}

    def read(self, events: Iterable[Any]) -> Unlinked:
        count = 0
        for event in events:
            if isinstance(event, dict):
                count += 1
                self._event(event)
            else:
                self.damage.foreign += 1
        tracks = [Track(p, t, self.labels.get((p, ""), ""), self.labels.get((p, t), "")) for p, t in self.tracks]
        slices = {n: np.array([s.get(n, NONE) for s in self.slices], t) for n, t in TYPES.items()}
        frames = {n: np.array([f[n] for f in self.frames], TYPES[n]) for n in FRAME_COLUMNS}
        return Unlinked(
            self.strings,
            tracks,
            slices,
            frames,
            self._flows(),
            count,
            frozenset(self.categories),
            self.drawn,
        )

    def _event(self, e: dict[str, Any]) -> None:
        phase, cat = e.get("ph"), e.get("cat")
        if phase == "M" and e.get("name") in ("process_name", "thread_name"):
            tid = "" if e["name"] == "process_name" else _place(e.get("tid"))
            place, label = (_place(e.get("pid")), tid), text_of(_args(e).get("name")).strip()
            known = self.labels.get(place, "")
            self.labels[place] = max(known, label, key=lambda text: (len(text), text))
        elif not isinstance(cat, str):
            return
        elif cat.startswith(DRAWN):
            self.drawn = True
        elif phase == "X" and (cat == PYTHON or cat in CATEGORIES):
            self._slice(e, cat)
        elif phase in ("s", "f") and cat in ARROWS and e.get("id") is not None:
            self._arrow(e, phase)

    def _slice(self, e: dict[str, Any], cat: str) -> None:
        self.categories.add(cat)
        ts, dur = _ns(e.get("ts")), _ns(e.get("dur"))
        if ts is None:
            self.damage.untimed += 1
            return
        self.damage.endless += dur is None
        row = {"track": self._track(e), "ts": ts, "dur": max(dur or 0, 0)}
        if cat == PYTHON:
            self.frames.append({**row, "name": self._number(_name(e), self.strings)})
            return
        category = CATEGORIES[cat]
        args = _args(e)
        name = _name(e)
        if category == Category.MEMCPY:
            name = copy_name(name, args.get("copy kind"), args.get("src kind"), args.get("dst kind"))
        row |= {"category": category, "name": self._number(name, self.strings)}
        for field in fields_of(category):
            row[field.column] = _fitting(id_of(args.get(field.key)), field.column)
        if category == Category.KERNEL:
            source, target = (id_of(args.get(key)) for key in ("Src Rank", "Dst Rank"))
            group = process_group(args.get("Process Group Name"), args.get("Process Group Ranks"), source, target)
            row["blocks"] = _fitting(blocks_of(args.get("grid")), "blocks")
            if group:
                row |= {"group": self._number(group, self.strings), "sequence": id_of(args.get("Seq"))}
        self.slices.append(row)

    def _arrow(self, e: dict[str, Any], phase: str) -> None:
        ts = _ns(e.get("ts"))
        if ts is None:
            return
        if phase == "s":
            id, start = _text_or_int(e["id"]), (ts, self.tracks[self._track(e)])
            self.flow_starts[id] = min(self.flow_starts.get(id, start), start)
        else:
            self.flow_ends.append((_text_or_int(e["id"]), self._track(e), ts))

    def _track(self, e: dict[str, Any]) -> int:
        return self._number((_place(e.get("pid")), _place(e.get("tid"))), self.tracks)

    def _number(self, value: Any, seen: list[Any]) -> int:
        if value not in self._numbers:
            self._numbers[value] = len(seen)
            seen.append(value)
        return self._numbers[value]

    def _flows(self) -> Flows:
        starts = self.flow_starts
        pairs = [(self._numbers[starts[i][1]], starts[i][0], t, ts) for i, t, ts in self.flow_ends if i in starts]
        types = (np.int32, np.int64, np.int32, np.int64)
        return Flows(*[np.array([p[i] for p in pairs], t) for i, t in enumerate(types)])


def _args(e: Mapping[str, Any]) -> Mapping[str, Any]:
    args = e.get("args")
    return args if isinstance(args, dict) else {}


def _name(e: Mapping[str, Any]) -> str:
    name = e.get("name")
    return text_of(name) if isinstance(name, (str, int, float)) else ""


def _place(value: Any) -> str:
    return text_of(_text_or_int(value))


def _text_or_int(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, (int, str)) and not isinstance(value, bool) else text_of(value)


def _ns(value: Any) -> int | None:
    ns, usable = nanoseconds(np.array([number_of(value)]))
    return int(ns[0]) if usable[0] else None


def _fitting(value: int, column: str) -> int:
    limits = np.iinfo(TYPES[column])
    return value if limits.min <= value <= limits.max else NONE
