"""Infer what a blocking call waited for, and whether it did: all work on some streams, or that before a record.

The trace states it if it can: a copy's stream, a synchronization row, a record named by a row or by capture. Otherwise
the block itself shows it: a blocked call returns promptly once the work it waited for is done, so among all streams and
records the one is meant whose work ended just before the return. A blocking copy also waits for what its stream waits
for: after an event (`cudaStreamWaitEvent`), work of any other stream, such as the end of a collective.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np

from syncscan.facts.device_work import DeviceWork
from syncscan.facts.event_records import TRIES, EventRecords, UsedStreams
from syncscan.facts.period import waits_before
from syncscan.facts.profiler_work import HOST_NS
from syncscan.model.arrays import Bool, Int32, Int64, distinct, numbered_pairs
from syncscan.model.finding import Awaited, Place
from syncscan.model.runtime_calls import (
    copy_direction,
    is_event_synchronize,
    is_of_a_stream,
    is_stream_wait,
    waits_by_nature,
)
from syncscan.model.trace import CALLS, NONE, Category, Trace

SHORTEST_NS = 20_000
"""Shorter waits look like the call itself: with nothing queued, 90 % of 459 calls took up to 19.5 µs.

All figures in this file: H200, torch 2.11, sample_traces, printed by benchmarks/detect_thresholds.py.
"""
PROMPT_NS = 100_000
"""Time after its work within which a call that waited returns: 95 % of 313 waits within 29 µs. Of 50 calls of the
allocator, one in ten takes longer than this without waiting."""


SHORT_NS = 50_000
"""A shorter call needs no explanation: with nothing queued, 95 % of 459 calls took up to 35 µs."""
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
    def __init__(self, trace: Trace, work: DeviceWork) -> None:
        self._trace, self.work, self.records = trace, work, trace.cached(EventRecords)

    def of(
        self, first: Int64, last: Int64, apis: Sequence[str], tracks: Sequence[int], supposed: Sequence[Place]
    ) -> list[Awaited | None]:
        """Return what each call (its first and last slice) waited for; None if no device worked.

        The `supposed` device and stream are stated by the trace or used last; stream NONE for all of them. `apis` are
        names of the last slices.
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
        is allowed. None if no work ended then: it didn't wait for the device, or for unknown work.
        """
        slices, first, last = self._trace.slices, queries[0], queries[-1]
        before_last = slices.ts.item(queries[-2])
        slack = max(HOST_NS, min(slices.ts.item(last) - before_last, PROMPT_NS))
        earliest, latest = max(before_last - HOST_NS, slices.ts.item(first)), slices.end.item(last) + slack
        records = self.records.before(first, TRIES, track=track) if of_event else []
        marked = (mark for record in records for mark in self.marked(record))
        possible = itertools.chain(marked, self._drained_work(first, track, one_stream=True))
        return next((one for one in possible if one.done is not None and earliest <= one.done <= latest), None)

    # where calls wait, and whether they did

    def places(self, first: Int64, last: Int64) -> list[Place]:
        """Return device and stream that calls wait for; stream NONE for the whole device, device NONE if none worked.

        The copy states it, or the profiler's synchronization row; else it is assumed to be where the thread launched
        last, as for a stream that the row leaves open (since CUDA 12.9).
        """
        slices = self._trace.slices
        of_a_stream = self._trace.called(last, is_of_a_stream)
        on, of = self._launched_last(first)
        device, stream = on, np.where(of_a_stream, of, NONE)
        for rows in (self._trace.sync_rows_of(last), self._trace.copies_of(first)):  # what comes last counts
            told_on, told_of = slices.device[rows], slices.stream[rows]
            stated = (rows != NONE) & (told_on != NONE)
            open_ = np.where((told_of == NONE) & of_a_stream, np.where(on == told_on, of, NONE), told_of)
            device, stream = np.where(stated, told_on, device), np.where(stated, open_, stream)
        return list(zip(device.tolist(), stream.tolist(), strict=True))

    def last_launches(self, rows: Int64) -> list[Place]:
        """Return device and stream of the last launch before each call on its thread; the first device without one."""
        device, stream = self._launched_last(rows)
        return list(zip(device.tolist(), stream.tolist(), strict=True))

    def _launched_last(self, rows: Int64) -> tuple[Int64, Int64]:
        slices = self._trace.slices
        calls, work = self._launch_rows
        at = np.searchsorted(calls, rows, side="right") - 1
        if not len(calls):
            return np.full(len(rows), self.first_device), np.full(len(rows), NONE)
        known = (at >= 0) & (slices.track[calls[at]] == slices.track[rows])
        device = np.where(known, slices.device[work[at]], self.first_device)
        return device, np.where(known, slices.stream[work[at]], NONE)

    @property
    def first_device(self) -> int:
        """Number of the first device that did work; NONE without any."""
        return next(iter(self.work.devices), NONE)

    def waited(
        self, begin: Int64, end: Int64, places: Sequence[Place], apis: Sequence[str], held: Int64 | None = None
    ) -> Bool:
        """Return whether each call blocked the host for most of its time, until previously queued work had ended.

        Calls that may be long with nothing queued count only if they returned promptly after the work.

        A copy was `held` until the end (ns) of the work of other streams that blocked it; 0 if none did. `apis` are
        names of the first runtime calls.
        """
        done, queued = self.work.last_ends(places, begin)
        if held is not None:
            done, queued = np.maximum(done, held), queued | (held > begin)
        by_nature = {api: waits_by_nature(api) for api in set(apis)}
        prompt = (end - done <= PROMPT_NS) | np.array([by_nature[api] for api in apis], np.bool_)
        long = (done - begin > SHORTEST_NS) & (end >= done - HOST_NS)
        waited: Bool = queued & long & prompt & (2 * (np.minimum(done, end) - begin) >= end - begin)
        return waited

    @cached_property
    def _launch_rows(self) -> tuple[Int64, Int64]:
        """Rows of calls that launched device work, ascending, and the row of each one's work."""
        work, calls = self._trace.device_rows, self._trace.device_calls
        launched = np.flatnonzero(calls != NONE)
        in_order = launched[np.argsort(calls[launched], kind="stable")]
        return calls[in_order], work[in_order]

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
        return tuple((device, other) for other in self.work.streams(device))

    def _launched_before(self, row: int, streams: tuple[Place, ...]) -> Awaited:
        """Return all work launched on these streams when a call began, including its own copy or kernel."""
        return self._awaited(streams, self._trace.slices.ts.item(row) + 1)

    def _awaited(self, streams: tuple[Place, ...], before: int, of_event: bool = False) -> Awaited:
        at = np.array([before])
        each = (self.work.of(*place).last_ends(at) for place in streams)
        return Awaited(streams, before, max((end.item() for end, some in each if some), default=None), of_event)

    def _drained_work(self, row: int, track: int, one_stream: bool) -> Iterator[Awaited]:
        """Yield each stream of its process, or each device as a whole."""
        foreign = self.of_other_processes(track)
        for device in self.work.devices:
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
            launched_on, _, _, used = self._launched
            places = [launched_on[number] for number in used.before(track, at)]
            self._marks[record] = _MarkedWork(self._awaited((place,), at, of_event=True) for place in places)
        return self._marks[record]

    @cached_property
    def _marks(self) -> dict[int, _MarkedWork]:
        return {}

    def _beside(self, records: list[int], track: int) -> list[int]:
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
    def _launched(self) -> tuple[list[Place], Int32, Int32, UsedStreams]:
        """Device and stream by number; of all launches the thread's track, and the stream's number; the used ones."""
        trace, s = self._trace, self._trace.slices
        known = np.flatnonzero(trace.device_calls != NONE)
        work, calls = trace.device_rows[known], trace.device_calls[known]
        pairs, stream = numbered_pairs(s.device[work], s.stream[work])
        places = [(device, number) for device, number in pairs.tolist()]
        return places, s.track[calls], stream, UsedStreams(s.track[calls], s.ts[calls], stream)


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


AT_ONCE_NS = 20_000
"""A stream continues this soon after the event that it waited for; a first kernel on an idle stream takes 2 to 16
µs."""


class HeldCopies:
    def __init__(self, trace: Trace, awaited: AwaitedWork) -> None:
        self._trace, self._work, self._awaited = trace, awaited.work, awaited
        rows = trace.where(is_stream_wait, *CALLS)
        self._waits: Int64 = rows[np.argsort(trace.slices.ts[rows], kind="stable")]
        self._waited_at = trace.slices.ts[self._waits]

    def until(self, calls: Int64, names: Sequence[str]) -> Int64:
        """Return for each call the time until which other streams blocked its copy, ns; 0 if none did."""
        s, copies = self._trace.slices, self._trace.copies_of(calls)
        places = list(zip(s.device[copies].tolist(), s.stream[copies].tolist(), strict=True))
        free, _ = self._work.last_ends(places, s.ts[calls])
        free = np.maximum(free, s.ts[calls])
        late = (copies != NONE) & (s.ts[copies] - free > SHORTEST_NS) & (s.ts[copies] < s.end[calls] + HOST_NS)
        times = np.zeros(len(calls), np.int64)
        for at in np.flatnonzero(late).tolist():
            begin = s.ts.item(copies.item(at))
            held = max(self._behind_events(calls.item(at), begin, places[at]), self._before(calls.item(at)))
            if names[at] and copy_direction(names[at]) == "DtoH" and begin - max(held, free.item(at)) > SHORT_NS:
                held = max(held, self._behind_others(free.item(at), begin, places[at], s.track.item(calls.item(at))))
            times[at] = min(held, begin)
        return times

    def _before(self, call: int) -> int:
        """Return until when this call waited for launches from before the first step, recorded or not; 0 if not."""
        s = self._trace.slices
        track, at = s.track.item(call), s.ts.item(call)
        return max((end for on, _, end in waits_before(self._trace) if on == track and at < end), default=0)

    def _behind_events(self, call: int, begin: int, place: Place) -> int:
        """Return when the last event was reached that this stream waits for since its last launch; 0 without one."""
        at = self._trace.slices.ts.item(call)
        launched = self._work.of(*place).launched
        before = int(launched.searchsorted(at))
        since = launched.item(before - 1) if before else 0
        first, behind = self._waited_at.searchsorted([since, at]).tolist()
        waits = self._waits[max(first, behind - TRIES) : behind].tolist()
        return max((self._reached(wait, begin, place) for wait in waits), default=0)

    def _reached(self, wait: int, begin: int, place: Place) -> int:
        """Return when the event of this wait was reached; 0 if no record can be meant."""
        times = [done for done in self._marked_ends(wait, begin, place) if done <= begin + HOST_NS]
        return next((done for done in times if begin - done <= AT_ONCE_NS), next(iter(times), 0))

    def _marked_ends(self, wait: int, begin: int, place: Place) -> Iterator[int]:
        """Yield when work on other streams ended that the event of this wait may mark, the likeliest first."""
        known, track = self._awaited.records, self._trace.slices.track.item(wait)
        records = [known.stated[wait]] if wait in known.stated else known.before(wait, TRIES, track=track)
        # torch 1.12 to 2.1 recorded none: then any work before the wait may be meant
        for record in records or [wait]:
            for marked in self._awaited.marked(record):
                if marked.done is not None and marked.streams[0] != place:
                    yield marked.done if records else self._last_done(marked.streams[0], marked.before, begin)

    def _last_done(self, place: Place, before: int, begin: int) -> int:
        """Return when the last work of a stream launched before `before` and done before the copy began ended."""
        work = self._work.of(*place)
        ends = work.done[: work.launched.searchsorted(before)]
        last = int(ends.searchsorted(begin + HOST_NS, side="right")) - 1
        return ends.item(last) if last >= 0 else 0

    def _behind_others(self, free: int, begin: int, place: Place, track: int) -> int:
        """Return when a stream finished that worked for most of the time before this copy, and just until it began.

        Nothing else keeps a copy to the host from beginning, as its host does nothing for it. So this shows waits whose
        calls aren't recorded, such as `cudaEventRecord` in torch 1.12 to 2.1, and those of the legacy default stream.
        """
        foreign, ends = self._awaited.of_other_processes(track), [0]
        for stream in self._work.streams(place[0]):
            work, until = self._work.of(place[0], stream), self._last_done((place[0], stream), begin, begin)
            worked = 2 * work.busy.between(free, begin) >= begin - free
            other = stream != place[1] and (place[0], stream) not in foreign
            if other and worked and begin - until <= AT_ONCE_NS:
                ends.append(until)
        return max(ends)
