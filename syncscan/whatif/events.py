"""From a Trace to its event edges: which work an event synchronise or a stream-wait waits for.

Where the trace states which record is meant, that is taken (`edges`). Else the edge is inferred: the nearest record on
the same thread whose work ended early enough to explain when the waiting work, or the host, went on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from syncscan.model.trace import Bool, Category, Int64, Trace
from syncscan.whatif.edges import stated_edges
from syncscan.whatif.launches import Launches

_RECORD = re.compile(r"(cuda|hip)EventRecord(WithFlags)?(_ptsz)?")
_STREAM_WAIT = re.compile(r"(cuda|hip)StreamWaitEvent(_ptsz)?")
_EVENT_SYNC = re.compile(r"(cuda|hip)EventSynchronize(_ptsz)?")
_TRIES, _LOOK_BACK = 8, 256
_SKEW_NS = 5_000


@dataclass(frozen=True, slots=True)
class Reached:
    """The point that an event marks: behind all work launched on `stream` before `ts`, the begin of its record call."""

    ts: int
    stream: int


@dataclass(frozen=True, slots=True)
class StreamWait:
    """From `ts` on, work launched on `stream` waits for `event`; `first` is the first launch that does."""

    ts: int
    stream: int
    event: Reached
    first: int


class Events:
    """Answers what an event wait in one trace waits for."""

    def __init__(self, trace: Trace, launches: Launches, begin: int, end: int) -> None:
        self.trace, self.launches = trace, launches
        inside = (trace.slices.ts >= begin) & (trace.slices.ts < end)
        host = inside & trace.is_category(Category.RUNTIME, Category.DRIVER)
        self.records = self._calls(host, _RECORD)
        self.waits = self._calls(host, _STREAM_WAIT)
        both = np.concatenate([self.waits, self._calls(host, _EVENT_SYNC)])
        self.stated = stated_edges(trace, self.records, both[np.argsort(trace.slices.ts[both], kind="stable")])
        self._on = {int(t): np.flatnonzero(launches.tracks == t) for t in np.unique(launches.tracks)}

    def stream_waits(self) -> list[StreamWait]:
        """All edges from one stream to another, in time order."""
        found = (self._stream_wait(int(row)) for row in self.waits)
        return [w for w in found if w is not None]

    def awaited(self, row: int, end: int) -> Reached | None:
        """What the event synchronise in this row, over at `end`, waited for; None if no record explains it."""
        s = self.trace.slices
        for record in self._candidates(row):
            for stream in self._streams(record):
                if self.launches.done(stream, int(s.ts[record])) <= end + _SKEW_NS:
                    return Reached(int(s.ts[record]), stream)
        return None

    def _calls(self, host: Bool, pattern: re.Pattern[str]) -> Int64:
        rows = np.flatnonzero(host & self.trace.named(pattern.fullmatch))
        return rows[np.argsort(self.trace.slices.ts[rows], kind="stable")]

    def _stream_wait(self, row: int) -> StreamWait | None:
        s, work = self.trace.slices, self.launches
        mine, at = self._place(row)
        if at >= len(mine):
            return None
        first = int(mine[at])
        target = int(work.stream[first])
        for record in self._candidates(row):
            for stream in self._streams(record):
                done = work.done(stream, int(s.ts[record]))
                if stream != target and done <= int(work.start[first]) + _SKEW_NS:
                    return StreamWait(int(s.ts[row]), target, Reached(int(s.ts[record]), stream), first)
        return None

    def _candidates(self, row: int) -> list[int]:
        """Rows of the records that the wait in this row may mean, the likeliest first."""
        if row in self.stated:
            return [self.stated[row]]
        s = self.trace.slices
        before = self.records[: int(np.searchsorted(s.ts[self.records], s.ts[row]))]
        mine = [r for r in before[-_LOOK_BACK:].tolist() if s.track[r] == s.track[row]]
        return mine[-_TRIES:][::-1]

    def _streams(self, record: int) -> list[int]:
        """Streams that this record may stand on: those its thread launched on before it, the latest first."""
        mine, at = self._place(record)
        streams, back = np.unique(self.launches.stream[mine[max(0, at - _LOOK_BACK) : at]][::-1], return_index=True)
        return [int(k) for k in streams[np.argsort(back)]]

    def _place(self, row: int) -> tuple[Int64, int]:
        """The launches of a call's thread, and how many of them come before the call."""
        s = self.trace.slices
        mine = self._on.get(int(s.track[row]), np.zeros(0, np.int64))
        return mine, int(np.searchsorted(self.launches.issued[mine], s.ts[row]))


def first_waiters(waits: list[StreamWait]) -> Int64:
    """The launches whose start is explained by an event, so that their own gap isn't the device's."""
    return np.array(sorted({w.first for w in waits}), np.int64)
