"""From decoded events, a piece at a time, to the columns of a whole trace; rows are in no particular order yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from syncscan.load.categories import ARROWS, CATEGORIES, ID_COLUMNS, PYTHON
from syncscan.load.damage import Damage
from syncscan.load.event import Args, Event
from syncscan.load.values import LONGEST_US, copy_name, id_of, nanoseconds, text_of
from syncscan.model.trace import NONE, Category, Flows, Frames, Int64, Slices, Track

TYPES: dict[str, Any] = {
    "category": np.int8, "name": np.int32, "track": np.int32, "ts": np.int64, "dur": np.int64, "correlation": np.int64,
    "external": np.int64, "sequence": np.int64, "fwd_thread": np.int32, "device": np.int32, "stream": np.int32,
    "bytes": np.int64, "copy_kind": np.int8, "awaits": np.int64, "parent": np.int32,
}  # fmt: skip
"""The columns of `Slices`, in order."""

FRAME_COLUMNS = ("name", "track", "ts", "dur")
"""The columns of `Frames`, in order."""

Rows = dict[str, Any]
Arrow = tuple[Any, int, float]
Export = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Unlinked:
    """All that was read of a trace, before linking; strings and tracks are numbered in order of appearance."""

    strings: Sequence[str]
    tracks: Sequence[Track]
    slices: Slices
    frames: Frames
    flows: Flows
    events: int
    categories: frozenset[str]


class Numbered(dict[Any, int]):
    """Gives each new key the next number."""

    def __missing__(self, key: Any) -> int:
        self[key] = number = len(self)
        return number


@dataclass(slots=True)
class Columns:
    """Collects the events of a trace as small arrays, one set a piece and category."""

    damage: Damage
    events: int = 0
    _strings: Numbered = field(default_factory=Numbered)
    _tracks: Numbered = field(default_factory=Numbered)
    _labels: dict[tuple[str, str], str] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)
    _slices: list[Rows] = field(default_factory=list)
    _frames: list[Rows] = field(default_factory=list)
    _starts: list[Arrow] = field(default_factory=list)
    _ends: list[Arrow] = field(default_factory=list)

    def add(self, events: Sequence[Event]) -> None:
        """Take over the events of one piece, in the order of the file."""
        self.events += len(events)
        groups: defaultdict[str, list[Event]] = defaultdict(list)
        for e in events:
            groups[e.cat].append(e)
        for cat, group in groups.items():
            if cat in ARROWS:
                self._arrows(group)
            elif cat in CATEGORIES:
                self._slices += self._rows(cat, group, CATEGORIES[cat])
            elif cat == PYTHON:
                self._frames += self._rows(cat, group, None)
            else:
                self._label(e for e in group if e.ph == "M")

    def _rows(self, cat: str, group: list[Event], category: Category | None) -> Iterable[Rows]:
        """Yields the arrays of one category's complete events; None is a Python frame's."""
        complete = [e for e in group if e.ph == "X"]
        if len(complete) < len(group):
            self._label(e for e in group if e.ph == "M")
        if not complete:
            return
        self._seen.add(cat)
        ts, timed = nanoseconds(_floats([e.ts for e in complete]))
        if not timed.all():
            self.damage.untimed += int((~timed).sum())
            complete, ts = [e for e, ok in zip(complete, timed.tolist(), strict=True) if ok], ts[timed]
        dur, known = nanoseconds(_floats([e.dur for e in complete]))
        self.damage.endless += int((~known).sum())
        n, tracks, strings = len(complete), self._tracks, self._strings
        named = [_copy(e) for e in complete] if category == Category.MEMCPY else [e.name for e in complete]
        rows = {
            "n": n,
            "name": np.fromiter([strings[name] for name in named], np.int32, n),
            "track": np.fromiter([tracks[e.pid, e.tid] for e in complete], np.int32, n),
            "ts": ts,
            "dur": np.maximum(dur, 0),
        }
        if category is not None:
            rows["category"] = category
            args = [e.args for e in complete]
            rows.update((column, _ints(_PICK[column](args), TYPES[column])) for column in ID_COLUMNS[category])
        yield rows

    def _arrows(self, group: Iterable[Event]) -> None:
        for e in group:
            if e.id is None or not -LONGEST_US <= e.ts <= LONGEST_US:
                continue
            if e.ph == "s":
                self._starts.append((e.id, self._tracks[e.pid, e.tid], e.ts))
            elif e.ph == "f":
                self._ends.append((e.id, self._tracks[e.pid, e.tid], e.ts))

    def _label(self, events: Iterable[Event]) -> None:
        for e in events:
            if e.name in ("process_name", "thread_name"):
                tid = "" if e.name == "process_name" else text_of(e.tid)
                self._name((text_of(e.pid), tid), e.args.label.strip())

    def _name(self, place: tuple[str, str], label: str) -> None:
        """Of several names for a process or thread the longest counts, whatever their order."""
        self._labels[place] = max(self._labels.get(place, ""), label, key=lambda text: (len(text), text))

    def export(self) -> Export:
        """All that was added, in a form that another process can take over."""
        return (
            self.events, list(self._strings), list(self._tracks), self._labels, self._seen, self.damage,
            _merged(self._slices, TYPES), _merged(self._frames, FRAME_COLUMNS), self._starts, self._ends,
        )  # fmt: skip

    def absorb(self, exported: Export) -> None:
        """Take over what was added elsewhere."""
        events, strings, tracks, labels, seen, damage, slices, frames, starts, ends = exported
        self.events += events
        self.damage.add(damage)
        name_of = np.array([self._strings[s] for s in strings], np.int32)
        track_of = [self._tracks[t] for t in tracks]
        for rows, into in ((slices, self._slices), (frames, self._frames)):
            if rows["n"]:
                rows |= {"name": name_of[rows["name"]], "track": np.array(track_of, np.int32)[rows["track"]]}
                into.append(rows)
        for place, label in labels.items():
            self._name(place, label)
        self._seen |= seen
        self._starts += [(i, track_of[track], ts) for i, track, ts in starts]
        self._ends += [(i, track_of[track], ts) for i, track, ts in ends]

    def finish(self) -> Unlinked:
        """The columns of everything that was added; nothing can be added any more."""
        texts = Numbered()
        track_of = np.array([texts[text_of(p), text_of(t)] for p, t in self._tracks], np.int32)
        tracks = [Track(p, t, self._labels.get((p, ""), ""), self._labels.get((p, t), "")) for p, t in texts]
        slices, frames = _merged(self._slices, TYPES), _merged(self._frames, FRAME_COLUMNS)
        del slices["n"], frames["n"]
        for columns in (slices, frames):
            columns["track"] = track_of[columns["track"]] if len(track_of) else columns["track"]
        flows = self._flows(track_of)
        seen = frozenset(self._seen)
        return Unlinked(tuple(self._strings), tracks, Slices(**slices), Frames(**frames), flows, self.events, seen)

    def _flows(self, track_of: np.ndarray[Any, Any]) -> Flows:
        first = {i: (track, ts) for i, track, ts in self._starts}
        if len(first) < len(self._starts):
            places = [(text_of(p), text_of(t)) for p, t in self._tracks]
            ordered = sorted(self._starts, key=lambda start: (start[2], places[start[1]]), reverse=True)
            first = {i: (track, ts) for i, track, ts in ordered}
        pairs = [(*first[i], track, ts) for i, track, ts in self._ends if i in first]
        from_track, from_us, to_track, to_us = (list(c) for c in zip(*pairs, strict=True)) if pairs else ([],) * 4
        from_ts, from_ok = nanoseconds(_floats(from_us))
        to_ts, to_ok = nanoseconds(_floats(to_us))
        ok = from_ok & to_ok
        tracks = [
            track_of[np.array(t, np.int32)[ok]] if pairs else np.zeros(0, np.int32) for t in (from_track, to_track)
        ]
        return Flows(tracks[0], from_ts[ok], tracks[1], to_ts[ok])


def _copy(e: Event) -> str:
    return copy_name(e.name, e.args.direction, e.args.source, e.args.target)


def _floats(values: list[float]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.fromiter(values, np.float64, len(values))


def _ints(values: list[int], dtype: Any) -> Int64:
    """As integers of this type, NONE for what doesn't fit."""
    try:
        wide = np.fromiter(values, np.int64, len(values))
    except OverflowError:
        wide = np.fromiter(map(id_of, values), np.int64, len(values))
    if dtype is np.int64:
        return wide
    limits = np.iinfo(dtype)
    return np.where((wide < limits.min) | (wide > limits.max), NONE, wide).astype(dtype)


def _external(args: list[Args]) -> list[int]:
    ids = [a.external for a in args]
    if NONE in ids:
        return [a.external_old if i == NONE else i for i, a in zip(ids, args, strict=True)]
    return ids


_PICK: dict[str, Callable[[list[Args]], list[int]]] = {
    "correlation": lambda args: [a.correlation for a in args],
    "external": _external,
    "sequence": lambda args: [a.sequence for a in args],
    "fwd_thread": lambda args: [a.fwd_thread for a in args],
    "device": lambda args: [a.device for a in args],
    "stream": lambda args: [a.stream for a in args],
    "bytes": lambda args: [a.bytes for a in args],
    "copy_kind": lambda args: [a.copy_kind for a in args],
    "awaits": lambda args: [a.awaits for a in args],
}
"""Column → how it is taken from the args; spelt out, as attributes by name take twice as long."""


def _merged(parts: list[Rows], names: Iterable[str]) -> Rows:
    """All parts as one; takes their arrays away, so that nothing is held twice for long."""
    merged = {name: _joined(parts, name, TYPES[name]) for name in names}
    n = sum(p["n"] for p in parts)
    parts.clear()
    return {"n": n, **merged}


def _joined(parts: list[Rows], name: str, dtype: Any) -> Any:
    out = np.full(sum(p["n"] for p in parts), NONE, dtype)
    at = 0
    for part in parts:
        if name in part:
            out[at : at + part["n"]] = part.pop(name)
        at += part["n"]
    return out
