"""From a Trace to its event edges: which work a stream waits for.

Where the trace states which record is meant, that is taken (`stated_edges`). Else the edge is inferred: the nearest
record on the same thread whose work ended early enough to explain when the waiting work went on. Traces of torch 1.12
to 2.1 have no records of events (libkineto left `cudaEventRecord` out): there the wait itself stands for it.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from syncscan.facts.stated_edges import stated_edges
from syncscan.model.arrays import Int64, distinct
from syncscan.model.interval import Interval
from syncscan.model.runtime_calls import is_event_record, is_event_synchronise, is_stream_wait
from syncscan.model.trace import CALLS, Trace
from syncscan.whatif.launches import Launches

TRIES = 8
"""Records before a wait that are tried as the one it means, the nearest first: programs hand over with one or two."""
LOOK_BACK = 256
"""Records and launches of a thread that are searched back for them."""
SKEW_NS = 5_000
"""How far the host's and the device's clocks may lie apart: what ends so much after a call may have held it."""


_NONE_THERE = (np.zeros(0, np.int64), np.zeros(0, np.int64))


class EventRecord(msgspec.Struct, frozen=True):
    """The point that an event marks: behind all work launched on `stream` before `ts`, the begin of its record call."""

    ts: int
    stream: int


class EventEdge(msgspec.Struct, frozen=True):
    """From `ts` on, work launched on `stream` waits for `event`; `first` is the first launch that does."""

    ts: int
    stream: int
    event: EventRecord
    first: int


class Events:
    """Answers what the stream waits in one trace wait for."""

    def __init__(self, trace: Trace, launches: Launches, begin: int, end: int) -> None:
        self.trace, self.launches = trace, launches
        self.within = Interval(begin, end)
        self.records = self._calls(is_event_record)
        self.waits = self._calls(is_stream_wait)
        both = np.concatenate([self.waits, self._calls(is_event_synchronise)])
        self.stated = stated_edges(trace, self.records, both[np.argsort(trace.slices.ts[both], kind="stable")])
        self._recorded_at = trace.slices.ts[self.records]
        self._on: dict[int, tuple[Int64, Int64]] = {}
        for track in distinct(launches.tracks).tolist():
            mine = np.flatnonzero(launches.tracks == track)
            self._on[track] = mine, launches.issued[mine]

    def edges(self) -> list[EventEdge]:
        """All edges from one stream to another, in time order."""
        found = (self._edge(int(row)) for row in self.waits)
        return [edge for edge in found if edge is not None]

    def _calls(self, wanted: Callable[[str], bool]) -> Int64:
        rows = self.trace.where(wanted, *CALLS)
        ts = self.trace.slices.ts[rows]
        order = np.argsort(ts, kind="stable")
        first, behind = np.searchsorted(ts[order], self.within)
        found: Int64 = rows[order[first:behind]]
        return found

    def _edge(self, row: int) -> EventEdge | None:
        s, work = self.trace.slices, self.launches
        mine, at = self._place(row)
        if at >= len(mine):
            return None
        first = int(mine[at])
        target = int(work.stream[first])
        for record in self._candidates(row):
            for stream in self._streams(record):
                done = work.done(stream, int(s.ts[record]))
                if stream != target and done <= int(work.start[first]) + SKEW_NS:
                    return EventEdge(int(s.ts[row]), target, EventRecord(int(s.ts[record]), stream), first)
        return None

    def _candidates(self, row: int) -> list[int]:
        """Rows of the records that the wait in this row may mean, the likeliest first."""
        if row in self.stated:
            return [self.stated[row]]
        if not len(self.records):
            return [row]  # torch 1.12 to 2.1 recorded none: the wait stands for it, mostly made just behind
        s = self.trace.slices
        behind = int(self._recorded_at.searchsorted(s.ts.item(row)))
        near = self.records[max(0, behind - LOOK_BACK) : behind]
        mine: list[int] = near[s.track[near] == s.track.item(row)][-TRIES:][::-1].tolist()
        return mine

    def _streams(self, record: int) -> list[int]:
        """Streams that this record may stand on: those its thread launched on before it, the latest first."""
        mine, at = self._place(record)
        return list(dict.fromkeys(self.launches.stream[mine[max(0, at - LOOK_BACK) : at]][::-1].tolist()))

    def _place(self, row: int) -> tuple[Int64, int]:
        """The launches of a call's thread, and how many of them come before the call."""
        s = self.trace.slices
        mine, issued = self._on.get(s.track.item(row), _NONE_THERE)
        return mine, int(issued.searchsorted(s.ts.item(row)))


def first_waiters(edges: list[EventEdge]) -> Int64:
    """The launches whose start is explained by an event, so that their own gap isn't the device's."""
    return np.array(sorted({edge.first for edge in edges}), np.int64)
