"""From a blocking call to what it waited for: all work on some streams, or that before an event's record on one.

The trace says it where it can: a copy's stream, a synchronisation row, a record that a row or capture names. What it
doesn't say is told by the block itself: a call that was held returns promptly once what it waited for is done, so that
of all streams and records the one is meant whose work ended just before the return.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import msgspec
import numpy as np

from syncscan.detect.waits import CLOCKS_NS, PROMPT_NS
from syncscan.facts.device_work import DeviceWork
from syncscan.facts.stated_edges import stated_edges
from syncscan.model.arrays import Int64, distinct
from syncscan.model.finding import Awaited, Place
from syncscan.model.runtime_calls import (
    is_event_record,
    is_event_synchronise,
    is_of_a_stream,
    is_stream_wait,
    waits_by_nature,
)
from syncscan.model.trace import CALLS, NONE, Category, Trace

SHORT_NS = 50_000
"""A shorter call needs no explanation: with nothing queued 95 % of 459 calls took up to 35 µs (see `waits`)."""
TRIES = 8
"""Records of the waiting thread that are tried as the one meant, the nearest first: programs hand over with one or two,
and FSDP's rate limiter keeps two all-gathers in flight."""
LOOK_BACK = 256
"""Records of other threads, and launches before a record, that are looked through: time must not grow with both."""
STREAM_ROW, EVENT_ROW, DEVICE_ROW = "Stream Sync", "Event Sync", "Context Sync"
"""Names of the profiler's synchronisation rows (CUPTI's)."""


def place_of(awaited: Awaited | None, api: str, supposed: Place) -> Place:
    """Device and stream that a call waited for, stream NONE for all of the device; as supposed where that holds."""
    if awaited is None or not awaited.streams or awaited.streams[0] == supposed:  # nearly always the last
        return supposed
    if len(awaited.streams) == 1 and _of_one_stream(api):
        return awaited.streams[0]
    device = awaited.streams[0][0]
    return supposed if device == supposed[0] else (device, NONE)


def _of_one_stream(api: str) -> bool:
    return is_of_a_stream(api) or api in (STREAM_ROW, EVENT_ROW)


class AwaitedWork:
    """Answers what the blocking calls of one trace waited for."""

    def __init__(self, trace: Trace, work: DeviceWork) -> None:
        self._trace, self._work = trace, work

    def of(self, rows: tuple[int, ...], api: str, track: int, supposed: Place) -> Awaited | None:
        """What a call waited for; None where no device worked.

        Args:
            rows: its slices, in time order.
            api: the name of the last of them.
            track: the thread that was held.
            supposed: the device and stream that the trace tells or that were used last; stream NONE for all of them.
        """
        if supposed[0] == NONE:
            return None
        if is_event_synchronise(api) or api == EVENT_ROW:
            return self._of_event(rows[-1], track, supposed)
        return self._of_streams(rows, api, track, supposed)

    def of_each(
        self, first: Int64, last: Int64, apis: Sequence[str], tracks: Sequence[int], supposed: Sequence[Place]
    ) -> list[Awaited | None]:
        """The same for each of many calls of one slice or two.

        Args:
            first, last: the slices of each call; the same where it has one.
            apis, tracks, supposed: of each, as of `of`.
        """
        awaited = self._named_streams(first, last, supposed)
        for call in [call for call, known in enumerate(awaited) if known is None]:
            one, other = first.item(call), last.item(call)
            rows = (one,) if one == other else (one, other)
            awaited[call] = self.of(rows, apis[call], tracks[call], supposed[call])
        return awaited

    def _named_streams(self, first: Int64, last: Int64, places: Sequence[Place]) -> list[Awaited | None]:
        """What those calls waited for whose stream is named by a copy or a synchronisation row: most of them, at once.

        Args:
            first, last: the first and the last slice of each call.
            places: as supposed.
        """
        slices = self._trace.slices
        row = self._trace.sync_rows_of(last)
        named = ((row != NONE) & (slices.stream[row] != NONE)) | (self._trace.copies_of(first) != NONE)
        named &= ~self._trace.called(last, is_event_synchronise)
        found: list[Awaited | None] = [None] * len(places)
        calls = [call for call in np.flatnonzero(named).tolist() if NONE not in places[call]]
        on, before = [places[call] for call in calls], slices.ts[last[calls]] + 1
        ends, some = self._work.last_ends(on, before)
        done = [end if any_ else None for end, any_ in zip(ends.tolist(), some.tolist(), strict=True)]
        for call, awaited in zip(calls, map(Awaited, zip(on), before.tolist(), done), strict=True):
            found[call] = awaited
        return found

    # streams and devices

    def _of_streams(self, rows: tuple[int, ...], api: str, track: int, supposed: Place) -> Awaited:
        """All work launched before the call: on what is told, else on what explains the block, else as supposed."""
        row, named = rows[-1], self._launched_before(rows[-1], self._streams(*supposed))
        one_stream = _of_one_stream(api)
        undecided = one_stream and len(named.streams) > 1
        if self._told(rows) or (self._explains(named, row) and not undecided):
            return named
        if not waits_by_nature(api) and api != STREAM_ROW:
            return self._done_by_return(named, row)
        return self._latest(self._drained(row, track, one_stream), row) or self._unexplained(named, row)

    def _told(self, rows: tuple[int, ...]) -> bool:
        """Whether a copy of its own or a synchronisation row says where the call waits."""
        slices, last = self._trace.slices, rows[-1]
        own = slices.category.item(last) == Category.SYNC
        row = last if own else self._trace.sync_rows_of(np.array([last])).item()
        by_row = row != NONE and (slices.stream.item(row) != NONE or self._trace.name(row) == DEVICE_ROW)
        return bool(by_row or self._trace.copy_of(rows[0]) != NONE)

    def _streams(self, device: int, stream: int = NONE) -> tuple[Place, ...]:
        if stream != NONE:
            return ((device, stream),)
        return tuple((device, other) for other in self._work.streams(device))

    def _launched_before(self, row: int, streams: tuple[Place, ...]) -> Awaited:
        """All that had been launched on these streams when a call began, its own copy or kernel too."""
        return self._awaited(streams, self._trace.slices.ts.item(row) + 1)

    def _awaited(self, streams: tuple[Place, ...], before: int, of_event: bool = False) -> Awaited:
        ends = [self._work.of(*place).last_end(before) for place in streams]
        return Awaited(streams, before, max([end for end in ends if end is not None], default=None), of_event)

    def _drained(self, row: int, track: int, one_stream: bool) -> Iterator[Awaited]:
        """What a call may have waited for: each stream of its process, or each device as a whole."""
        others = self.of_other_processes(track)
        for device in self._work.devices:
            streams = tuple(place for place in self._streams(device) if place not in others)
            for together in [(place,) for place in streams] if one_stream else [streams]:
                yield self._launched_before(row, together)

    def _unexplained(self, named: Awaited, row: int) -> Awaited:
        """As supposed: where a call was held for long the clocks may differ, a short one didn't wait for later work."""
        return self._done_by_return(named, row) if self._short(row) else named

    def _done_by_return(self, named: Awaited, row: int) -> Awaited:
        """The same without streams whose work ended only after the call had returned: that isn't what held it."""
        latest = int(self._trace.slices.end[row]) + CLOCKS_NS
        each = [self._awaited((place,), named.before) for place in named.streams]
        streams = tuple(one.streams[0] for one in each if one.done is None or one.done <= latest)
        return self._awaited(streams, named.before)

    # what a block's length tells

    def _short(self, row: int) -> bool:
        return self._trace.slices.dur.item(row) < SHORT_NS

    def _explains(self, awaited: Awaited, row: int) -> bool:
        """Whether this was done by the time that a call returned, and a long one was held by it to its end."""
        return self._reached(awaited, row) and (self._short(row) or self._holds(awaited, row))

    def _reached(self, awaited: Awaited, row: int) -> bool:
        return awaited.done is None or awaited.done <= self._trace.slices.end.item(row) + CLOCKS_NS

    def _holds(self, awaited: Awaited, row: int) -> bool:
        """Whether a call was held by this for most of its time, and then returned promptly."""
        slices = self._trace.slices
        begin, end, done = slices.ts.item(row), slices.end.item(row), awaited.done
        if done is None or not self._reached(awaited, row):
            return False
        return end - done <= PROMPT_NS and 2 * (done - begin) >= end - begin

    def _latest(self, possible: Iterable[Awaited], row: int) -> Awaited | None:
        """Of what would have held a call to its end, that which ended last, the first of several; None without."""
        holding = (awaited for awaited in possible if self._holds(awaited, row))
        return max(holding, key=lambda awaited: awaited.done or 0, default=None)

    # events

    def _of_event(self, row: int, track: int, supposed: Place) -> Awaited:
        """Work before the record that is named, else before one that explains the block, else a drained stream's."""
        named = self._named_record(row)
        if named != NONE:
            marked = self.marked(named)
            return self._likeliest(marked, row) or next(iter(marked), self._nothing(row))
        own = (marked for record in self.records_before(row, track, TRIES) for marked in self.marked(record))
        nearest = self._likeliest(own, row)
        if nearest is not None and self._explains(nearest, row):
            return nearest
        others = (marked for record in self._beside(self.records_before(row), track) for marked in self.marked(record))
        found = self._latest(others, row) or self._latest(self._drained(row, track, one_stream=True), row)
        return found or nearest or self._unexplained(self._launched_before(row, self._streams(*supposed)), row)

    def _likeliest(self, possible: Iterable[Awaited], row: int) -> Awaited | None:
        """The first that explains a call's length, else the first that was reached by its return; None without."""
        reached = None
        for awaited in possible:
            if self._explains(awaited, row):
                return awaited
            if reached is None and self._reached(awaited, row):
                reached = awaited
        return reached

    def _nothing(self, row: int) -> Awaited:
        return Awaited((), int(self._trace.slices.ts[row]), None, of_event=True)

    def _named_record(self, row: int) -> int:
        """The row of the record that a synchronisation row or capture names, NONE without."""
        if row in self.stated:
            return self.stated[row]
        return int(self._trace.calls_with(self._trace.slices.awaits[[row]])[0])

    def marked(self, record: int) -> _Marks:
        """What a record marks on each stream that it may stand on: those its thread launched on, the latest first."""
        if record not in self._marks:  # waits that follow one another look back over the same records
            at, track = self._trace.slices.ts.item(record), self._trace.slices.track.item(record)
            places = self._launched_on[track].latest_before(at) if track in self._launched_on else iter(())
            self._marks[record] = _Marks(self._awaited((place,), at, of_event=True) for place in places)
        return self._marks[record]

    @cached_property
    def _marks(self) -> dict[int, _Marks]:
        """Row of each record that was asked for → what it marks."""
        return {}

    def records_before(self, row: int, track: int = NONE, most: int = LOOK_BACK) -> list[int]:
        """Rows of the last records before a call, the latest first: of one thread, or of all."""
        records, times = self._records_of(track)
        count = int(times.searchsorted(self._trace.slices.ts.item(row)))
        found: list[int] = records[max(0, count - most) : count][::-1].tolist()
        return found

    def _beside(self, records: list[int], track: int) -> list[int]:
        """Those of these records that were made in this thread's process."""
        process = self._process_of
        beside = process[self._trace.slices.track[records]] == process[track]
        return list(itertools.compress(records, beside.tolist()))

    @cached_property
    def _process_of(self) -> Int64:
        """For each track a number that those of its process share."""
        numbers: dict[str, int] = {}
        return np.array([numbers.setdefault(track.pid, len(numbers)) for track in self._trace.tracks], np.int64)

    def of_other_processes(self, track: int) -> set[Place]:
        """Streams that only other processes of the file launched on: a thread can't wait for those."""
        pid = self._trace.tracks[track].pid
        if self._launching <= {pid}:  # nearly always, and launches needn't be sorted for it
            return set()
        return set().union(*self._used_by.values()) - self._used_by.get(pid, set())

    @cached_property
    def _launching(self) -> set[str]:
        """The pids of the processes that launched device work."""
        calls = self._trace.device_calls
        tracks = distinct(self._trace.slices.track[calls[calls != NONE]]).tolist()
        return {self._trace.tracks[track].pid for track in tracks}

    @cached_property
    def _used_by(self) -> dict[str, set[Place]]:
        """Pid of each process → the streams that it launched on."""
        found: dict[str, set[Place]] = {}
        for track, launches in self._launched_on.items():
            found.setdefault(self._trace.tracks[track].pid, set()).update(launches.places)
        return found

    def _records_of(self, track: int) -> tuple[Int64, Int64]:
        """Rows of a thread's record calls, or of all for NONE, in time order, and when they began."""
        if track not in self._records:
            every, times = self._records[NONE]
            mine = self._trace.slices.track[every] == track
            self._records[track] = every[mine], times[mine]
        return self._records[track]

    @cached_property
    def _records(self) -> dict[int, tuple[Int64, Int64]]:
        """Those of all, and of threads as they are asked for."""
        trace = self._trace
        rows = trace.where(is_event_record, *CALLS)
        rows = rows[np.argsort(trace.slices.ts[rows], kind="stable")]
        return {NONE: (rows, trace.slices.ts[rows])}

    @cached_property
    def _launched_on(self) -> dict[int, _Launches]:
        """Per thread that launched device work its launches."""
        trace, slices = self._trace, self._trace.slices
        calls = trace.device_calls
        work, calls = trace.device_rows[calls != NONE], calls[calls != NONE]
        order = np.lexsort((slices.ts[calls], slices.track[calls]))
        work, calls = work[order], calls[order]
        places = np.stack([slices.device[work], slices.stream[work]], axis=1).astype(np.int64)
        tracks, first = np.unique(slices.track[calls], return_index=True)
        ends = [*first.tolist(), len(calls)][1:]
        runs = zip(tracks.tolist(), first.tolist(), ends, strict=True)
        return {track: _launches(slices.ts[calls[begin:end]], places[begin:end]) for track, begin, end in runs}

    @cached_property
    def stated(self) -> dict[int, int]:
        """Row of a call that waits for an event → row of the record that the trace says it means."""
        trace = self._trace
        rows = trace.where(lambda name: is_event_synchronise(name) or is_stream_wait(name), *CALLS)
        return stated_edges(trace, self._records[NONE][0], rows[np.argsort(trace.slices.ts[rows], kind="stable")])


class _Launches(msgspec.Struct, frozen=True, eq=False):
    """The launches of one thread, as runs of those on one stream after the other."""

    issued: Int64
    """When each launch was made, ascending."""
    runs: Int64
    """The number of the first launch of each run."""
    places: tuple[Place, ...]
    """Device and stream of each run."""

    def latest_before(self, at: int) -> Iterator[Place]:
        """Where the last launches before this time went, the latest first."""
        end = int(self.issued.searchsorted(at))
        first = int(self.runs.searchsorted(max(0, end - LOOK_BACK), side="right")) - 1
        last, told = int(self.runs.searchsorted(end)), set[Place]()
        for run in range(last - 1, max(first, 0) - 1, -1):
            place = self.places[run]
            if place not in told:
                told.add(place)
                yield place


class _Marks:
    """What a record marks, found as far as anybody looks: of fifty streams mostly the first one explains a wait."""

    def __init__(self, source: Iterator[Awaited]) -> None:
        self._source = source
        self._known: list[Awaited] = []

    def __iter__(self) -> Iterator[Awaited]:
        for place in itertools.count():
            if place == len(self._known):
                new = next(self._source, None)
                if new is None:
                    return
                self._known.append(new)
            yield self._known[place]


def _launches(issued: Int64, places: Int64) -> _Launches:
    """From when launches were made and the device and stream of each, one a row."""
    begins = np.append(0, 1 + np.flatnonzero((np.diff(places, axis=0) != 0).any(axis=1)))
    return _Launches(issued, begins, tuple((device, stream) for device, stream in places[begins].tolist()))
