"""From a blocking call to what it waited for: all work on some streams, or that before an event's record on one.

The trace says it where it can: a copy's stream, a synchronisation row, a record that a row or capture names. What it
doesn't say is told by the block itself: a call that was held returns promptly once what it waited for is done, so that
of all streams and records the one is meant whose work ended just before the return.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from syncscan.detect.waits import PROMPT_NS
from syncscan.facts.clocks import HOST_NS
from syncscan.facts.device_work import DeviceWork
from syncscan.facts.event_records import TRIES, EventRecords, UsedStreams
from syncscan.model.arrays import Bool, Int32, Int64, distinct, numbered_pairs
from syncscan.model.finding import Awaited, Place
from syncscan.model.runtime_calls import (
    is_event_synchronize,
    is_of_a_stream,
    waits_by_nature,
)
from syncscan.model.trace import NONE, Category, Trace

SHORT_NS = 50_000
"""A shorter call needs no explanation: with nothing queued 95 % of 459 calls took up to 35 µs (see `waits`)."""
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
        self._trace, self._work, self.records = trace, work, trace.kept(EventRecords)

    def of(
        self, first: Int64, last: Int64, apis: Sequence[str], tracks: Sequence[int], supposed: Sequence[Place]
    ) -> list[Awaited | None]:
        """Return what each of some calls waited for; None where no device worked.

        Args:
            first, last: the first and the last slice of each; the same where it has one.
            apis: the names of the last ones.
            tracks: the threads that were held.
            supposed: the device and stream that the trace tells or that were used last; stream NONE for all of them.
        """
        told = self._told(first, last).tolist()
        return list(map(self._of, last.tolist(), apis, tracks, supposed, told))

    def _of(self, row: int, api: str, track: int, supposed: Place, told: bool) -> Awaited | None:
        """Return what the call waited for whose last slice this is; `told` if the trace says where."""
        if supposed[0] == NONE:
            return None
        if is_event_synchronize(api) or api == EVENT_ROW:
            return self._of_event(row, track, supposed)
        return self._of_streams(row, api, track, supposed, told)

    def of_poll(self, queries: Sequence[int], track: int, of_event: bool) -> Awaited | None:
        """Return what a loop of queries waited for: the work that ended between its last two queries.

        Between two queries nobody knows when, and host and device have clocks of their own: a query's distance counts.

        Args:
            queries: its slices, two or more, in time order.
            track: the thread that asked.
            of_event: it asked for an event, else for a stream.

        Returns:
            None where no work ended then: it isn't the device that it waited for, or nobody can tell what of it.
        """
        slices, first, last = self._trace.slices, queries[0], queries[-1]
        before_last = slices.ts.item(queries[-2])
        slack = max(HOST_NS, min(slices.ts.item(last) - before_last, PROMPT_NS))
        earliest, latest = max(before_last - HOST_NS, slices.ts.item(first)), slices.end.item(last) + slack
        records = self.records.before(first, TRIES, track=track) if of_event else []
        marked = (mark for record in records for mark in self.marked(record))
        possible = itertools.chain(marked, self._drained(first, track, one_stream=True))
        return next((one for one in possible if one.done is not None and earliest <= one.done <= latest), None)

    # streams and devices

    def _told(self, first: Int64, last: Int64) -> Bool:
        """Return for which calls a copy of their own or a synchronization row says where they wait."""
        s = self._trace.slices
        row = np.where(s.category[last] == Category.SYNC, last, self._trace.sync_rows_of(last))
        by_row = (s.stream[row] != NONE) | self._trace.called(row, DEVICE_ROW.__eq__)
        told: Bool = ((row != NONE) & by_row) | (self._trace.copies_of(first) != NONE)
        return told

    def _of_streams(self, row: int, api: str, track: int, supposed: Place, told: bool) -> Awaited:
        """All work launched before the call: on what is told, else on what explains the block, else as supposed."""
        named, one_stream = self._launched_before(row, self._streams(*supposed)), _of_one_stream(api)
        undecided = one_stream and len(named.streams) > 1
        if told or (self._explains(named, row) and not undecided):
            return named
        if not waits_by_nature(api) and api != STREAM_ROW:
            return self._done_by_return(named, row)
        return self._latest(self._drained(row, track, one_stream), row) or self._unexplained(named, row)

    def _streams(self, device: int, stream: int = NONE) -> tuple[Place, ...]:
        if stream != NONE:
            return ((device, stream),)
        return tuple((device, other) for other in self._work.streams(device))

    def _launched_before(self, row: int, streams: tuple[Place, ...]) -> Awaited:
        """All that had been launched on these streams when a call began, its own copy or kernel too."""
        return self._awaited(streams, self._trace.slices.ts.item(row) + 1)

    def _awaited(self, streams: tuple[Place, ...], before: int, of_event: bool = False) -> Awaited:
        at = np.array([before])
        each = (self._work.of(*place).last_ends(at) for place in streams)
        return Awaited(streams, before, max((end.item() for end, some in each if some), default=None), of_event)

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
        latest = int(self._trace.slices.end[row]) + HOST_NS
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
        return awaited.done is None or awaited.done <= self._trace.slices.end.item(row) + HOST_NS

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
        own = (marked for record in self.records.before(row, TRIES, track=track) for marked in self.marked(record))
        nearest = self._likeliest(own, row)
        if nearest is not None and self._explains(nearest, row):
            return nearest
        others = (marked for record in self._beside(self.records.before(row), track) for marked in self.marked(record))
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
        if row in self.records.stated:
            return self.records.stated[row]
        return int(self._trace.calls_with(self._trace.slices.awaits[[row]])[0])

    def marked(self, record: int) -> _Marks:
        """What a record marks on each stream that it may stand on: those its thread launched on, the latest first."""
        if record not in self._marks:  # waits that follow one another look back over the same records
            at, track = self._trace.slices.ts.item(record), self._trace.slices.track.item(record)
            places = [self._launched.places[number] for number in self._launched.used.before(track, at)]
            self._marks[record] = _Marks(self._awaited((place,), at, of_event=True) for place in places)
        return self._marks[record]

    @cached_property
    def _marks(self) -> dict[int, _Marks]:
        """Row of each record that was asked for → what it marks."""
        return {}

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
        process = self._process_of.item(track)
        if process not in self._of_others:
            places, by, stream, _ = self._launched
            own = self._process_of[by] == process
            only = set(distinct(stream[~own]).tolist()) - set(distinct(stream[own]).tolist())
            self._of_others[process] = {places[number] for number in only}
        return self._of_others[process]

    @cached_property
    def _of_others(self) -> dict[int, set[Place]]:
        return {}

    @cached_property
    def _launched(self) -> _Launched:
        trace, s = self._trace, self._trace.slices
        known = np.flatnonzero(trace.device_calls != NONE)
        work, calls = trace.device_rows[known], trace.device_calls[known]
        pairs, stream = numbered_pairs(s.device[work], s.stream[work])
        places = [(device, number) for device, number in pairs.tolist()]
        return _Launched(places, s.track[calls], stream, UsedStreams(s.track[calls], s.ts[calls], stream))


class _Launched(NamedTuple):
    """The device work whose launch is in the trace."""

    places: list[Place]
    """Device and stream, by the stream's number here."""
    by: Int32
    """The track of the thread that launched each."""
    stream: Int32
    """The number of each one's stream."""
    used: UsedStreams


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
