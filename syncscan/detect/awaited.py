"""Infer what a blocking call waited for: all work on some streams, or the work before an event's record.

The trace states it if it can: a copy's stream, a synchronization row, a record named by a row or by capture. Otherwise
the block itself shows it: a blocked call returns promptly once the work it waited for is done, so among all streams and
records the one is meant whose work ended just before the return.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from syncscan.detect.waits import PROMPT_NS
from syncscan.facts.clock_tolerance import HOST_NS
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
"""A shorter call needs no explanation: with nothing queued, 95 % of 459 calls took up to 35 µs (see `waits`)."""
STREAM_ROW, EVENT_ROW, DEVICE_ROW = "Stream Sync", "Event Sync", "Context Sync"
"""Names of the profiler's synchronization rows (from CUPTI)."""


def place_of(awaited: Awaited | None, api: str, supposed: Place) -> Place:
    """Return device and stream that a call waited for (NONE: whole device); the supposed ones if confirmed."""
    if awaited is None or not awaited.streams or awaited.streams[0] == supposed:  # nearly always the latter
        return supposed
    if len(awaited.streams) == 1 and _of_one_stream(api):
        return awaited.streams[0]
    device = awaited.streams[0][0]
    return supposed if device == supposed[0] else (device, NONE)


def _of_one_stream(api: str) -> bool:
    return is_of_a_stream(api) or api in (STREAM_ROW, EVENT_ROW)


class AwaitedWork:
    """Infers what the blocking calls of one trace waited for."""

    def __init__(self, trace: Trace, work: DeviceWork) -> None:
        self._trace, self._work, self.records = trace, work, trace.kept(EventRecords)

    def of(
        self, first: Int64, last: Int64, apis: Sequence[str], tracks: Sequence[int], supposed: Sequence[Place]
    ) -> list[Awaited | None]:
        """Return what each call waited for; None if no device worked.

        Args:
            first, last: rows of the first and last slice of each call; equal for a single slice.
            apis: names of the last slices.
            tracks: tracks of the blocked threads.
            supposed: device and stream stated by the trace or used last; stream NONE for all of them.
        """
        stated = self._stated(first, last).tolist()
        return list(map(self._of, last.tolist(), apis, tracks, supposed, stated))

    def _of(self, row: int, api: str, track: int, supposed: Place, stated: bool) -> Awaited | None:
        """Return what the call with this last slice waited for; `stated` tells whether the trace states where."""
        if supposed[0] == NONE:
            return None
        if is_event_synchronize(api) or api == EVENT_ROW:
            return self._of_event(row, track, supposed)
        return self._of_streams(row, api, track, supposed, stated)

    def of_poll(self, queries: Sequence[int], track: int, of_event: bool) -> Awaited | None:
        """Return what a loop of queries waited for: the work that ended between its last two queries.

        When it ended between two queries is unknown, and host and device have different clocks, so one query's distance
        is

        allowed.
            queries: slices of the queries, two or more, in time order.
            track: track of the querying thread.
            of_event: whether it queried an event rather than a stream.

        Returns:
            None if no work ended then: it didn't wait for the device, or for unknown work.
        """
        slices, first, last = self._trace.slices, queries[0], queries[-1]
        before_last = slices.ts.item(queries[-2])
        slack = max(HOST_NS, min(slices.ts.item(last) - before_last, PROMPT_NS))
        earliest, latest = max(before_last - HOST_NS, slices.ts.item(first)), slices.end.item(last) + slack
        records = self.records.before(first, TRIES, track=track) if of_event else []
        marked = (mark for record in records for mark in self.marked(record))
        possible = itertools.chain(marked, self._drained_work(first, track, one_stream=True))
        return next((one for one in possible if one.done is not None and earliest <= one.done <= latest), None)

    # streams and devices

    def _stated(self, first: Int64, last: Int64) -> Bool:
        """Return for which calls a copy of their own or a synchronization row states where they wait."""
        s = self._trace.slices
        row = np.where(s.category[last] == Category.SYNC, last, self._trace.sync_rows_of(last))
        by_row = (s.stream[row] != NONE) | self._trace.called(row, DEVICE_ROW.__eq__)
        stated: Bool = ((row != NONE) & by_row) | (self._trace.copies_of(first) != NONE)
        return stated

    def _of_streams(self, row: int, api: str, track: int, supposed: Place, stated: bool) -> Awaited:
        """Return the backlog of the stated streams, else of those that explain the block, else of the supposed ones."""
        named, one_stream = self._launched_before(row, self._streams(*supposed)), _of_one_stream(api)
        undecided = one_stream and len(named.streams) > 1
        if stated or (self._explains(named, row) and not undecided):
            return named
        if not waits_by_nature(api) and api != STREAM_ROW:
            return self._done_by_return(named, row)
        return self._latest(self._drained_work(row, track, one_stream), row) or self._unexplained(named, row)

    def _streams(self, device: int, stream: int = NONE) -> tuple[Place, ...]:
        if stream != NONE:
            return ((device, stream),)
        return tuple((device, other) for other in self._work.streams(device))

    def _launched_before(self, row: int, streams: tuple[Place, ...]) -> Awaited:
        """Return all work launched on these streams when a call began, including its own copy or kernel."""
        return self._awaited(streams, self._trace.slices.ts.item(row) + 1)

    def _awaited(self, streams: tuple[Place, ...], before: int, of_event: bool = False) -> Awaited:
        at = np.array([before])
        each = (self._work.of(*place).last_ends(at) for place in streams)
        return Awaited(streams, before, max((end.item() for end, some in each if some), default=None), of_event)

    def _drained_work(self, row: int, track: int, one_stream: bool) -> Iterator[Awaited]:
        """Yield what a call may have waited for: each stream of its process, or each device as a whole."""
        foreign = self.of_other_processes(track)
        for device in self._work.devices:
            streams = tuple(place for place in self._streams(device) if place not in foreign)
            for together in [(place,) for place in streams] if one_stream else [streams]:
                yield self._launched_before(row, together)

    def _unexplained(self, named: Awaited, row: int) -> Awaited:
        """Return the supposed work; a short call didn't wait for later work, for a long one the clocks may differ."""
        return self._done_by_return(named, row) if self._short(row) else named

    def _done_by_return(self, named: Awaited, row: int) -> Awaited:
        """Return the work without streams that finished after the call returned."""
        latest = int(self._trace.slices.end[row]) + HOST_NS
        by_stream = [self._awaited((place,), named.before) for place in named.streams]
        streams = tuple(one.streams[0] for one in by_stream if one.done is None or one.done <= latest)
        return self._awaited(streams, named.before)

    # what the length of a block shows

    def _short(self, row: int) -> bool:
        return self._trace.slices.dur.item(row) < SHORT_NS

    def _explains(self, awaited: Awaited, row: int) -> bool:
        """Return whether this was done when the call returned, and blocked a long call until its end."""
        return self._reached(awaited, row) and (self._short(row) or self._holds(awaited, row))

    def _reached(self, awaited: Awaited, row: int) -> bool:
        return awaited.done is None or awaited.done <= self._trace.slices.end.item(row) + HOST_NS

    def _holds(self, awaited: Awaited, row: int) -> bool:
        """Return whether this blocked a call for most of its time, and the call then returned promptly."""
        slices = self._trace.slices
        begin, end, done = slices.ts.item(row), slices.end.item(row), awaited.done
        if done is None or not self._reached(awaited, row):
            return False
        return end - done <= PROMPT_NS and 2 * (done - begin) >= end - begin

    def _latest(self, possible: Iterable[Awaited], row: int) -> Awaited | None:
        """Return, of the work that could have blocked a call until its end, the one that ended last, or None."""
        holding = (awaited for awaited in possible if self._holds(awaited, row))
        return max(holding, key=lambda awaited: awaited.done or 0, default=None)

    # events

    def _of_event(self, row: int, track: int, supposed: Place) -> Awaited:
        """Return the work before the named record, else one that explains the block, else of a drained stream."""
        named = self._record_by_name(row)
        if named != NONE:
            marked = self.marked(named)
            return self._likeliest(marked, row) or next(iter(marked), self._nothing(row))
        own = (marked for record in self.records.before(row, TRIES, track=track) for marked in self.marked(record))
        nearest = self._likeliest(own, row)
        if nearest is not None and self._explains(nearest, row):
            return nearest
        beside = (marked for record in self._beside(self.records.before(row), track) for marked in self.marked(record))
        latest = self._latest(beside, row) or self._latest(self._drained_work(row, track, one_stream=True), row)
        return latest or nearest or self._unexplained(self._launched_before(row, self._streams(*supposed)), row)

    def _likeliest(self, possible: Iterable[Awaited], row: int) -> Awaited | None:
        """Return the first that explains a call's length, else the first that was done when it returned, or None."""
        reached = None
        for awaited in possible:
            if self._explains(awaited, row):
                return awaited
            if reached is None and self._reached(awaited, row):
                reached = awaited
        return reached

    def _nothing(self, row: int) -> Awaited:
        return Awaited((), int(self._trace.slices.ts[row]), None, of_event=True)

    def _record_by_name(self, row: int) -> int:
        """Return the row of the record that a synchronization row or capture names, or NONE."""
        if row in self.records.stated:
            return self.records.stated[row]
        return int(self._trace.calls_with(self._trace.slices.awaits[[row]])[0])

    def marked(self, record: int) -> _MarkedWork:
        """Return what a record marks on each stream that it may be on: those its thread used, the latest first."""
        if record not in self._marks:  # successive waits search the same records
            at, track = self._trace.slices.ts.item(record), self._trace.slices.track.item(record)
            places = [self._launched.places[number] for number in self._launched.used.before(track, at)]
            self._marks[record] = _MarkedWork(self._awaited((place,), at, of_event=True) for place in places)
        return self._marks[record]

    @cached_property
    def _marks(self) -> dict[int, _MarkedWork]:
        """Row of each requested record → what it marks."""
        return {}

    def _beside(self, records: list[int], track: int) -> list[int]:
        """Return those of these records that were made in this thread's process."""
        process = self._process_of
        beside = process[self._trace.slices.track[records]] == process[track]
        return list(itertools.compress(records, beside.tolist()))

    @cached_property
    def _process_of(self) -> Int64:
        """For each track, a number shared by the tracks of its process."""
        numbers: dict[str, int] = {}
        return np.array([numbers.setdefault(track.pid, len(numbers)) for track in self._trace.tracks], np.int64)

    def of_other_processes(self, track: int) -> set[Place]:
        """Return the streams that only other processes launched on, for which a thread can't wait."""
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
    """Device work with a launch in the trace."""

    places: list[Place]
    """Device and stream, by the number used for the stream here."""
    by: Int32
    """Track of the launching thread."""
    stream: Int32
    """Number of the stream."""
    used: UsedStreams


class _MarkedWork:
    """The work that a record marks, evaluated lazily: of fifty streams, usually the first explains a wait."""

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
