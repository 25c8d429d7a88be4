"""Find the event edges of a trace: which work a stream waits for.

If the trace states which record is meant, that is used. Otherwise the edge is inferred: the nearest record on the same
thread whose work ended early enough to explain when the waiting work continued. Traces of torch 1.12 to 2.1 have no
event records (libkineto left `cudaEventRecord` out); there the wait itself replaces it.

Some edges no call explains: a stream that waits for an event may get its next work much later, from another place in
the program, so that the call before that work shows nothing. The device's times still do: queued work that began just
when another stream's work ended (FSDP2's stream for copies into an all-gather).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from syncscan.facts.event_records import TRIES, EventRecords, UsedStreams
from syncscan.facts.profiler_work import STREAM_NS
from syncscan.model.arrays import Int64, grouped
from syncscan.model.interval import Interval
from syncscan.model.runtime_calls import is_stream_wait
from syncscan.model.trace import CALLS, Trace
from syncscan.whatif.launch_gaps import Launches

_NO_LAUNCHES = np.zeros(0, np.int64)


class EventRecord(msgspec.Struct, frozen=True):
    """The point that an event marks: after all work launched on `stream` before `ts`, the begin of its record call."""

    ts: int
    stream: int


class EventEdge(msgspec.Struct, frozen=True):
    """Work launched on `stream` from `ts` on waits for `event`; `first` is the first launch that does."""

    ts: int
    stream: int
    event: EventRecord
    first: int


class Events:
    def __init__(self, trace: Trace, launches: Launches, within: Interval) -> None:
        self.trace, self.launches, self.within = trace, launches, within
        self.records = trace.cached(EventRecords)
        self._used = UsedStreams(launches.tracks, launches.issued, launches.stream)
        self._on = {track: (rows, launches.issued[rows]) for track, rows in grouped(launches.tracks)}

    def edges(self) -> list[EventEdge]:
        rows = self.trace.where(is_stream_wait, *CALLS)
        ts = self.trace.slices.ts[rows]
        order = np.argsort(ts, kind="stable")
        first, behind = np.searchsorted(ts[order], self.within)
        candidates = map(self._edge, rows[order[first:behind]].tolist())
        return [edge for edge in candidates if edge is not None]

    def _edge(self, row: int) -> EventEdge | None:
        s, work, ts = self.trace.slices, self.launches, self.trace.slices.ts.item(row)
        launched, issued = self._on.get(s.track.item(row), (_NO_LAUNCHES, _NO_LAUNCHES))
        behind = int(issued.searchsorted(ts))
        if behind == len(launched):
            return None
        first = launched.item(behind)
        target, latest = work.stream.item(first), work.start.item(first) + STREAM_NS
        for record in self._candidates(row):
            at = s.ts.item(record)
            if not self.within.holds(at):
                continue
            for stream in self._used.before(s.track.item(record), at):
                if stream != target and work.done(stream, at) <= latest:
                    return EventEdge(ts, target, EventRecord(at, stream), first)
        return None

    def _candidates(self, row: int) -> list[int]:
        """Return the rows of the records that the wait in this row may mean, the likeliest first."""
        if self.records.none:
            return [row]  # torch 1.12 to 2.1 recorded none: use the wait, which usually comes right after it
        stated = self.records.stated.get(row)
        track = self.trace.slices.track.item(row)
        return self.records.before(row, TRIES, track=track) if stated is None else [stated]


def first_waiters(edges: list[EventEdge]) -> Int64:
    """Return the launches whose start an event explains, so that their gap isn't the device's own."""
    return np.array(sorted({edge.first for edge in edges}), np.int64)


LONG_NS = 50_000
"""A longer pause between queued work isn't the device's own, which takes a few µs."""
AT_ONCE_NS = 20_000
"""Delay with which work begins after what it waited for (two H200s: 2 to 12 µs after an all-gather)."""


def coincident_edges(launches: Launches, edges: Sequence[EventEdge]) -> list[EventEdge]:
    """Return an edge for each launch whose begin another stream's end explains, the last to end before it."""
    waiters = set(first_waiters(list(edges)).tolist())
    order = np.argsort(launches.end, kind="stable")
    ends = launches.end[order]
    inferred = []
    for at in np.flatnonzero(launches.gap > LONG_NS).tolist():
        if at in waiters:
            continue
        begin = int(launches.start[at])
        first, last = np.searchsorted(ends, [begin - AT_ONCE_NS, begin], side="right")
        for other in order[first:last][::-1].tolist():
            if launches.stream[other] != launches.stream[at] and other < at:
                record = EventRecord(int(launches.returned[other]), int(launches.stream[other]))
                inferred.append(EventEdge(int(launches.issued[at]), int(launches.stream[at]), record, at))
                break
    return inferred
