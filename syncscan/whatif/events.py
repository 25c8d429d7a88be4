"""From a Trace to its event edges: which work an event synchronise or a stream-wait waits for.

`cuda_sync` rows name the record that is awaited. Without them the edge is inferred: the nearest record on the same
thread whose work ended early enough to explain when the waiting work, or the host, went on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from syncscan.model.trace import NONE, Category, Int64, Trace
from syncscan.whatif.launches import Launches

_RECORD = re.compile(r"(cuda|hip)EventRecord(WithFlags)?(_ptsz)?")
_STREAM_WAIT = re.compile(r"(cuda|hip)StreamWaitEvent(_ptsz)?")
_TRIES = 8
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
        self.records = np.flatnonzero(host & trace.named(_RECORD.fullmatch))
        self.waits = np.flatnonzero(host & trace.named(_STREAM_WAIT.fullmatch))
        s = trace.slices
        stated = np.flatnonzero((s.category == Category.SYNC) & (s.awaits != NONE) & (s.correlation != NONE))
        self.stated = dict(zip(s.correlation[stated].tolist(), s.awaits[stated].tolist(), strict=True))
        self.record_of = {int(s.correlation[r]): int(r) for r in self.records}

    def stream_waits(self) -> list[StreamWait]:
        """All edges from one stream to another, in time order."""
        found = (self._stream_wait(int(row)) for row in self.waits)
        return sorted((w for w in found if w is not None), key=lambda w: w.ts)

    def awaited(self, row: int, end: int) -> Reached | None:
        """What the event synchronise in this row, over at `end`, waited for; None if no record explains it."""
        s = self.trace.slices
        for record in self._candidates(row):
            for stream in self._streams(record):
                if self.launches.done(stream, int(s.ts[record])) <= end + _SKEW_NS:
                    return Reached(int(s.ts[record]), stream)
        return None

    def _stream_wait(self, row: int) -> StreamWait | None:
        s, work = self.trace.slices, self.launches
        later = np.flatnonzero((work.tracks == s.track[row]) & (work.issued >= s.ts[row]))
        if not len(later):
            return None
        first = int(later[0])
        target = int(work.stream[first])
        for record in self._candidates(row):
            for stream in self._streams(record):
                done = work.done(stream, int(s.ts[record]))
                if stream != target and done <= int(work.start[first]) + _SKEW_NS:
                    return StreamWait(int(s.ts[row]), target, Reached(int(s.ts[record]), stream), first)
        return None

    def _candidates(self, row: int) -> list[int]:
        """Rows of the records that the wait in this row may mean, the likeliest first."""
        s = self.trace.slices
        stated = self.record_of.get(self.stated.get(int(s.correlation[row]), NONE))
        if stated is not None:
            return [stated]
        mine = self.records[(s.track[self.records] == s.track[row]) & (s.ts[self.records] < s.ts[row])]
        return [int(r) for r in mine[-_TRIES:][::-1]]

    def _streams(self, record: int) -> list[int]:
        """Streams that this record may stand on: those its thread launched on before it, the latest first."""
        s, work = self.trace.slices, self.launches
        mine = np.flatnonzero((work.tracks == s.track[record]) & (work.issued < s.ts[record]))
        streams, back = np.unique(work.stream[mine][::-1], return_index=True)
        return [int(k) for k in streams[np.argsort(back)]]


def first_waiters(waits: list[StreamWait]) -> Int64:
    """The launches whose start is explained by an event, so that their own gap isn't the device's."""
    return np.array(sorted({w.first for w in waits}), np.int64)
