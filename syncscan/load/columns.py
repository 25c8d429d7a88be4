"""Collect decoded events, a piece at a time, in the columns of a whole trace, with rows in any order."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from syncscan.load.damage import Damage
from syncscan.load.event import Args, Grouped, TraceEvent
from syncscan.load.fields import (
    ARROWS,
    CATEGORIES,
    FIELDS,
    LONGEST_US,
    PYTHON,
    Float64,
    blocks_of,
    copy_name,
    fields_of,
    getter,
    nanoseconds,
    process_group,
    text_of,
)
from syncscan.load.table import Arrays, Table, Values
from syncscan.model.arrays import Int32, Int64
from syncscan.model.trace import DRAWN, NONE, Category, Flows, Track

TYPES: dict[str, Any] = {
    "category": np.int8, "name": np.int32, "track": np.int32, "ts": np.int64, "dur": np.int64,
    **{field.column: field.type for field in FIELDS}, "group": np.int32, "blocks": np.int32,
}  # fmt: skip
"""The columns of `Slices` that are read, in order; linking adds `parent`."""

FRAME_COLUMNS = ("name", "track", "ts", "dur")
"""The columns of `Frames`, in order."""

Group = tuple[Category | None, Sequence[Any]]
"""Events of one category of slices; of Python's frames with None."""
ArrowEnd = tuple[Any, int, float]
"""An arrow's id, and the track number and time in µs of its start or end."""


KEY_BYTES = 150
"""Size of a name, track or label besides itself: its entry in a dict, its number, and its entries in later lists
(2,000,000 names took 140 bytes each, peak resident size)."""


class Unlinked(msgspec.Struct, frozen=True):
    """Everything read of a trace before linking; strings and tracks are numbered in order of appearance."""

    strings: Sequence[str]
    tracks: Sequence[Track]
    slices: Arrays
    """The columns of `Slices` by name. Linking takes them out one by one, so that nothing is in memory twice for
    long."""
    frames: Arrays
    """The columns of `Frames`, which linking takes out in the same way."""
    flows: Flows
    events: int
    categories: frozenset[str]
    drawn: bool = False
    """Whether some events were added by `syncscan annotate`."""


class Numbered(dict[Any, int]):
    """Gives each new key the next number, and sums up the size of the keys in bytes."""

    bytes = 0

    def __missing__(self, key: Any) -> int:
        self[key] = number = len(self)
        self.bytes += sys.getsizeof(key) + KEY_BYTES
        return number


class Columns(msgspec.Struct):
    """Collects the events of a trace as rows of slices and frames.

    Tracks are numbered by pid and tid as written (1 and "1" differ), since a dict looks these up fastest. `finish`
    joins tracks that are equal as text.
    """

    damage: Damage
    events: int = 0
    rows: int = 0
    """Number of slices, frames and ends of arrows."""
    _strings: Numbered = msgspec.field(default_factory=Numbered)
    _tracks: Numbered = msgspec.field(default_factory=Numbered)
    _labels: dict[tuple[str, str], str] = msgspec.field(default_factory=dict)
    """(pid, tid) → name of the thread; (pid, "") → name of the process."""
    _categories: set[str] = msgspec.field(default_factory=set)
    _slices: Table = msgspec.field(default_factory=lambda: Table(TYPES))
    _frames: Table = msgspec.field(default_factory=lambda: Table({name: TYPES[name] for name in FRAME_COLUMNS}))
    _arrow_starts: list[ArrowEnd] = msgspec.field(default_factory=list)
    _arrow_ends: list[ArrowEnd] = msgspec.field(default_factory=list)
    _drawn: bool = False

    @property
    def texts_bytes(self) -> int:
        return self._strings.bytes + self._tracks.bytes + len(self._labels) * 2 * KEY_BYTES

    def add(self, grouped: Grouped) -> None:
        slices: list[Group] = []
        for name, group in grouped.items():
            self.events += len(group)
            if name in ARROWS:
                self._add_arrows(group)
            elif name in CATEGORIES:
                slices.append((CATEGORIES[name], self._complete(name, group)))
            elif name == PYTHON:
                self._add_rows(self._frames, [(None, self._complete(name, group))])
            else:
                self._drawn = self._drawn or name.startswith(DRAWN)
                self._add_labels(group)
        self._add_rows(self._slices, slices)

    def _complete(self, name: str, group: Sequence[Any]) -> Sequence[Any]:
        """Return the events of this category that have a begin and an end."""
        events = [event for event in group if event.ph == "X"] if isinstance(group[0], TraceEvent) else group
        if len(events) < len(group):
            self._add_labels(group)
        if events:
            self._categories.add(name)
        return events

    def _add_rows(self, table: Table, groups: list[Group]) -> None:
        """Add the events of several categories, common fields at once, as a numpy call costs as much as 50 rows."""
        groups, ts = self._with_times(groups)
        events = [event for _, group in groups for event in group]
        if not events:
            return
        self.rows += len(events)
        # with `map`, since a spelled-out look-up takes a sixth longer
        name_of, count = self._strings.__getitem__, len(events)
        values: list[Values] = [
            ("name", 0, _pack(map(name_of, [event.name for event in events]), count, np.int32)),
            ("track", 0, self._tracks_of(events)),
            ("ts", 0, ts),
            ("dur", 0, self._durations(events)),
        ]
        first = 0
        for category, group in groups:
            if category is not None and group:
                values += [(name, first, column) for name, column in self._of_category(category, group)]
            first += len(group)
        table.add(count, values)

    def _tracks_of(self, events: Sequence[Any]) -> Int32:
        """Return the track number of each event; frames are mostly on one track, which is checked first."""
        pids, tids, count = [event.pid for event in events], [event.tid for event in events], len(events)
        if tids.count(tids[0]) == count == pids.count(pids[0]):
            return np.full(count, self._tracks[pids[0], tids[0]], np.int32)
        numbers: Int32 = _pack(map(self._tracks.__getitem__, zip(pids, tids, strict=True)), count, np.int32)
        return numbers

    def _with_times(self, groups: list[Group]) -> tuple[list[Group], Int64]:
        """Return the events with a time, and their starts in ns; count those without."""
        ts, has_time = nanoseconds(_floats([event.ts for _, group in groups for event in group]))
        if has_time.all():
            return groups, ts
        self.damage.untimed += int((~has_time).sum())
        groups = [(category, [e for e in group if abs(e.ts) <= LONGEST_US]) for category, group in groups]
        return groups, ts[has_time]

    def _durations(self, events: list[TraceEvent]) -> Int64:
        """Return the durations in ns, 0 for a missing one, which is counted."""
        dur, has_duration = nanoseconds(_floats([event.dur for event in events]))
        if not has_duration.all():
            self.damage.endless += int((~has_duration).sum())
        # Kineto clamps negative durations to 0 (libkineto's output_json.cpp, handleActivity), so other writers' are
        # clamped too.
        return np.maximum(dur, 0)

    def _of_category(self, category: Category, group: Sequence[Any]) -> Iterator[tuple[str, Any]]:
        """Yield the columns that only slices of this category have."""
        args = [event.args for event in group]
        yield "category", np.full(len(group), category, np.int8)
        for field in fields_of(category):
            numbers = _GETTERS[field.column](args)
            if not field.rare or numbers.count(NONE) < len(numbers):
                yield field.column, _ints(numbers, field.type)
        if category == Category.MEMCPY:
            yield "name", [self._strings[_copy(event)] for event in group]
        if category == Category.KERNEL and any(a.grid is not None for a in args):
            yield "blocks", _ints([blocks_of(a.grid) for a in args], np.int32)
        if category == Category.KERNEL and any(a.group is not None for a in args):
            yield from self._groups(args)

    def _groups(self, args: list[Args]) -> Iterator[tuple[str, Any]]:
        """Yield the process group of each collective's kernel, and its number within the group."""
        texts = [process_group(a.group, a.ranks, a.source_rank, a.target_rank) for a in args]
        yield "group", [self._strings[text] if text else NONE for text in texts]
        yield "sequence", _ints([a.number if text else NONE for a, text in zip(args, texts, strict=True)], np.int64)

    def _add_arrows(self, group: Sequence[TraceEvent]) -> None:
        self.rows += len(group)
        for event in group:
            if event.id is None or not -LONGEST_US <= event.ts <= LONGEST_US:
                continue
            if event.ph == "s":
                self._arrow_starts.append((event.id, self._tracks[event.pid, event.tid], event.ts))
            elif event.ph == "f":
                self._arrow_ends.append((event.id, self._tracks[event.pid, event.tid], event.ts))

    def _add_labels(self, group: Iterable[TraceEvent]) -> None:
        for event in group:
            if event.ph == "M" and event.name in ("process_name", "thread_name"):
                tid = "" if event.name == "process_name" else text_of(event.tid)
                self._add_label((text_of(event.pid), tid), event.args.label.strip())

    def _add_label(self, place: tuple[str, str], label: str) -> None:
        """Store the longest of several names of a process or thread, whatever their order.

        Kineto may write a name twice, and a stream's as `stream 7` or `stream 7 context` (libkineto's output_json.cpp).
        """
        self._labels[place] = max(self._labels.get(place, ""), label, key=lambda text: (len(text), text))

    def name(self, text: str) -> int:
        """Return the number of a name, for a reader that makes whole columns itself; see `add_columns`."""
        return self._strings[text]

    def track(self, pid: str, tid: str, process: str = "", thread: str = "") -> int:
        """Return the number of a track, as `name` does, and store its labels."""
        if process:
            self._add_label((pid, ""), process)
        if thread:
            self._add_label((pid, tid), thread)
        return self._tracks[pid, tid]

    def add_columns(self, category: Category | Any | None, columns: Mapping[str, Any]) -> None:
        """Add slices of a category, or one each, or frames (None), as whole columns, `ts` among them."""
        count = len(columns["ts"])
        values: list[Values] = [(name, 0, column) for name, column in columns.items()]
        if category is None:
            self._frames.add(count, values)
        else:
            self._slices.add(count, [("category", 0, np.broadcast_to(np.int8(category), count)), *values])
        self.rows += count
        self.events += count

    def absorb(self, other: Columns) -> None:
        self.events += other.events
        self.rows += other.rows
        self.damage.add(other.damage)
        own_name = np.array([self._strings[text] for text in other._strings], np.int32)
        own_track = np.array([self._tracks[track] for track in other._tracks], np.int32)
        for table, theirs in ((self._slices, other._slices), (self._frames, other._frames)):
            for block in theirs.blocks():
                _renumber(block.columns, own_name, own_track)
            table.take_over(theirs.blocks())
        for place, label in other._labels.items():
            self._add_label(place, label)
        self._categories |= other._categories
        self._drawn = self._drawn or other._drawn
        for arrows, theirs_ in ((self._arrow_starts, other._arrow_starts), (self._arrow_ends, other._arrow_ends)):
            arrows += [(arrow, int(own_track[track]), ts) for arrow, track, ts in theirs_]

    def finish(self) -> Unlinked:
        places = Numbered()
        track_of = np.array([places[text_of(pid), text_of(tid)] for pid, tid in self._tracks], np.int32)
        tracks = [
            Track(pid, tid, self._labels.get((pid, ""), ""), self._labels.get((pid, tid), "")) for pid, tid in places
        ]
        slices, frames = self._slices.columns(), self._frames.columns()
        for columns in (slices, frames):
            columns["track"] = track_of[columns["track"]] if len(track_of) else columns["track"]
        return Unlinked(
            strings=tuple(self._strings),
            tracks=tracks,
            slices=slices,
            frames=frames,
            flows=self._flows(track_of),
            events=self.events,
            categories=frozenset(self._categories),
            drawn=self._drawn,
        )

    def _flows(self, track_of: Int32) -> Flows:
        """Return each end of an arrow with its start; ends without a recorded start are left out."""
        starts = self._first_starts()
        pairs = [(*starts[arrow], track, ts) for arrow, track, ts in self._arrow_ends if arrow in starts]
        if not pairs:
            none = np.zeros(0, np.int32)
            return Flows(none, none.astype(np.int64), none, none.astype(np.int64))
        from_track, from_us, to_track, to_us = (list(column) for column in zip(*pairs, strict=True))
        from_ts, _ = nanoseconds(_floats(from_us))
        to_ts, _ = nanoseconds(_floats(to_us))
        return Flows(track_of[np.array(from_track)], from_ts, track_of[np.array(to_track)], to_ts)

    def _first_starts(self) -> dict[Any, tuple[int, float]]:
        """Return the track and time of each arrow's start; of several starts the earliest."""
        starts = self._arrow_starts
        first = {arrow: (track, ts) for arrow, track, ts in starts}
        if len(first) == len(starts):
            return first
        places = [(text_of(pid), text_of(tid)) for pid, tid in self._tracks]
        latest_first = sorted(starts, key=lambda start: (start[2], places[start[1]]), reverse=True)
        return {arrow: (track, ts) for arrow, track, ts in latest_first}


def _copy(event: TraceEvent) -> str:
    return copy_name(event.name, event.args.direction, event.args.source, event.args.target)


def _floats(values: list[float]) -> Float64:
    floats: Float64 = _pack(values, len(values), np.float64)
    return floats


def _pack(values: Iterable[Any], count: int, dtype: Any) -> Any:
    """Return this many numbers as an array, by `struct`, which takes 7 ns per value where `numpy.fromiter` takes 13."""
    return np.frombuffer(struct.pack(f"{count}{np.dtype(dtype).char}", *values), dtype)


def _ints(values: list[int], dtype: Any) -> Any:
    """Return integers of this type, NONE for numbers that don't fit."""
    try:
        return _pack(values, len(values), dtype)
    except struct.error:
        limits = np.iinfo(dtype)
        return np.array([value if limits.min <= value <= limits.max else NONE for value in values], dtype)


_GETTERS = {field.column: getter(field.column) for field in FIELDS}
"""Column → function that takes its numbers from many args."""


def _renumber(columns: Arrays, own_name: Int32, own_track: Int32) -> None:
    columns["name"], columns["track"] = own_name[columns["name"]], own_track[columns["track"]]
    if "group" in columns:
        group = columns["group"]
        columns["group"] = np.where(group == NONE, NONE, own_name[np.maximum(group, 0)])
