"""From sync points to their waits: which call held the host, what it waited for, what it costs otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from syncscan.facts.clocks import HOST_NS
from syncscan.facts.full_queue import held_by_queue
from syncscan.model.arrays import median, quantile
from syncscan.model.finding import Place, Removal, SyncPoint
from syncscan.model.interval import Interval, ThreadInterval
from syncscan.model.names import is_torch_op
from syncscan.model.runtime_calls import allocates, frees, is_memcpy, is_query
from syncscan.model.trace import NONE, Trace
from syncscan.whatif.copies import Copies
from syncscan.whatif.events import EventRecord
from syncscan.whatif.launches import Launches

USUAL_CALL_NS = 10_000.0
"""A runtime call that has nothing to wait for takes at most this, where the trace has no shorter one of its name."""
USUAL_WAKE_NS = 10_000.0
"""From the device's end to the host's going on, where the trace has no wait to measure it on."""
MAX_WAKE_NS = 200_000.0
"""A host that goes on later than this was held by something else (another thread, the GIL): that stays its own time."""


READS = frozenset({"aten::is_nonzero", "aten::item", "aten::_local_scalar_dense"})
"""Ops that do nothing but bring a number to the host."""


class NumberedPoint(NamedTuple):
    """A sync point, and the number of its finding; NONE for one that can't be removed."""

    finding: int
    point: SyncPoint


class Wait(msgspec.Struct, frozen=True):
    """What a sync point did to its thread: between the ends of `interval` the thread's time isn't its own.

    All times in ns. `finding` is the number of its finding, NONE for what can't be removed.
    """

    track: int
    interval: Interval
    streams: tuple[int, ...]
    """Numbers of the streams that it waited for, where no event says it better."""
    event: EventRecord | None
    call_ns: float
    """What the call costs when there is nothing to wait for."""
    wake_ns: float
    """How long after the device the host goes on."""
    after_ns: float
    """The sync point's calls behind the one that blocks."""
    left_ns: float
    """Host time that a removal leaves in place of the call: an asynchronous copy still has to be launched."""
    finding: int
    waited_ns: float
    """How long it waited in the trace."""
    read_ns: float = 0.0
    """The host's time in what goes with it, the wait left out: a read-back's op, or the staging of a pageable copy."""
    op_ns: float = 0.0
    """The same of the whole op around it: it goes too where a replacement does without the op."""
    copy: int = NONE
    """The stream of its copy that becomes shorter or goes, NONE without."""
    copy_ns: float = 0.0
    """How much of that copy goes: what pinning saves of a pageable one, all of a read-back's own."""


def find_waits(trace: Trace, launches: Launches, points: Sequence[NumberedPoint]) -> list[Wait]:
    """Measure every sync point; those that didn't wait get the usual wake-up time of those that did."""
    ruler = _Ruler(trace, launches, [point for _, point in points])
    waits = [ruler.wait(*numbered, awaited) for numbered, awaited in zip(points, ruler.awaited, strict=True)]
    wakes = [w.wake_ns for w in waits if w.waited_ns > 0]
    usual = median(wakes) if wakes else USUAL_WAKE_NS
    op = [_outermost(trace, point) for _, point in points]
    read = [_read(trace, point, outermost) for (_, point), outermost in zip(points, op, strict=True)]
    own = zip(_own_times(trace, read, waits), _own_times(trace, op, waits), strict=True)
    return [
        replace(w, wake_ns=w.wake_ns if w.waited_ns > 0 else usual, read_ns=w.read_ns + of_read, op_ns=of_op)
        for w, (of_read, of_op) in zip(waits, own, strict=True)
    ]


def _own_times(trace: Trace, ops: Sequence[int], waits: Sequence[Wait]) -> list[float]:
    """Per wait the host's time in its op (NONE: none) without all waits in that op; 0 but for the first in an op."""
    lengths = trace.slices.dur.take(np.array(ops, np.int64)).tolist()
    own: dict[int, float] = {}
    for op, length, wait in zip(ops, lengths, waits, strict=True):
        if op != NONE:
            own[op] = own.get(op, float(length)) - (wait.interval[1] - wait.interval[0])
    return [max(0.0, own.pop(op, 0.0)) for op in ops]


def _outermost(trace: Trace, point: SyncPoint) -> int:
    """The outermost of torch's own ops around a sync point, NONE without: what a program calls, not what calls it.

    None goes with a call of the allocator's: whatever asked for memory stays.
    """
    call = trace.name(point.calls[0])
    if frees(call) or allocates(call):
        return NONE
    for row in point.ops:
        if is_torch_op(trace.name(row)):
            return row
    return NONE


def _read(trace: Trace, point: SyncPoint, outermost: int) -> int:
    """The op that goes with a removed sync point, NONE where all of it stays.

    Nothing stays of a read-back: without a profiler an `.item()` takes the host 8 to 11 µs on an idle device, and the
    `detach()` in its place 0.5 µs (H200, torch 2.11). Where the kernels stay, the read inside their op goes.
    """
    if point.diagnosis.removal is Removal.NOTHING:
        return outermost
    if point.diagnosis.removal is Removal.KERNELS:
        return next((row for row in point.ops if trace.name(row) in READS), NONE)
    return NONE


class _Awaited(NamedTuple):
    """The numbers of the streams that a call waited for, and when they were done (ns; 0 if they had nothing to do)."""

    streams: tuple[int, ...]
    done: int
    event: EventRecord | None = None


class _Ruler:
    """Measures the sync points of one trace.

    Args:
        trace: any trace.
        launches: of the steps that are replayed.
        points: all that will be measured.
    """

    def __init__(self, trace: Trace, launches: Launches, points: Sequence[SyncPoint]) -> None:
        self.trace, self.launches, self.points = trace, launches, points
        calls = [call for point in points for call in point.calls]
        rows = np.array(calls, np.int64)
        self.copies = Copies(trace, calls)
        self._begin = dict(zip(calls, trace.slices.ts.take(rows).tolist(), strict=True))
        self._end = dict(zip(calls, trace.slices.end.take(rows).tolist(), strict=True))
        self._usual: dict[int, float] = {}

    def wait(self, finding: int, point: SyncPoint, awaited: _Awaited) -> Wait:
        """Measure one sync point of this finding, which waited for this."""
        last, row = self._end[point.calls[-1]], self._blocking(point, awaited.done)
        start, end, done = self._begin[row], self._end[row], awaited.done
        if is_query(point.api):  # a loop of them waits, and none of them does
            start = point.ts
        waited = done > start
        wake = min(max(float(end - done), 0.0), MAX_WAKE_NS) if waited else 0.0
        # What the host lost between waking up and returning beyond that is its own time again.
        own = int(end - done - wake) if waited and end > done else 0
        copy, saved = self._copy(point)
        return Wait(
            track=point.track,
            interval=Interval(start, max(last - own, start)),
            streams=awaited.streams,
            event=awaited.event,
            call_ns=min(float(end - start), self._usual_call(row)) if waited else float(end - start),
            wake_ns=wake,
            after_ns=float(last - end),
            left_ns=self._left(point, row),
            finding=finding,
            waited_ns=float(max(0, done - start)),
            read_ns=self._staged(point, row),
            copy=copy,
            copy_ns=saved,
        )

    def _copy(self, point: SyncPoint) -> tuple[int, float]:
        """The stream of its copy (NONE without), and how much of the copy the removal saves, ns."""
        of = self.copies.whole if point.diagnosis.removal is Removal.NOTHING else self.copies.saved
        for row in point.calls:
            found = of(row)
            if found and found[0] in self.launches.streams:
                return self.launches.streams.index(found[0]), found[1]
        return NONE, 0.0

    @property
    def awaited(self) -> list[_Awaited]:
        """What each waited for, in the numbers that streams have here; work of steps that aren't replayed is none."""
        streams = [self._streams(point.awaited.streams) if point.awaited else () for point in self.points]
        before = [point.awaited.before if point.awaited else 0 for point in self.points]
        ended = [self.launches.done(k, np.array(before, np.int64)).tolist() for k in range(len(self.launches.streams))]
        found = []
        for at, (point, numbers) in enumerate(zip(self.points, streams, strict=True)):
            done = max([ended[number][at] for number in numbers], default=0)
            of_event = numbers and point.awaited and point.awaited.of_event
            found.append(_Awaited(numbers, done, EventRecord(before[at], numbers[0]) if of_event else None))
        return found

    def _streams(self, awaited: Sequence[Place]) -> tuple[int, ...]:
        """The numbers of these streams, of those that have one."""
        return tuple([number for number, place in enumerate(self.launches.streams) if place in awaited])

    def _blocking(self, point: SyncPoint, done: int) -> int:
        """The call that was in progress when the awaited work ended; the last one where none was.

        Only where the clocks leave none is one that had returned by HOST_NS: the copy of a read-back returns before its
        synchronise does the waiting.
        """
        for skew in (0, HOST_NS):
            for row in point.calls:
                if self._begin[row] < done <= self._end[row] + skew:
                    return row
        return point.calls[-1]

    def _left(self, point: SyncPoint, row: int) -> float:
        """What stays of the call when the wait is removed: an asynchronous copy still has to be launched."""
        stays = point.diagnosis.removal in (Removal.ASYNC_COPY, Removal.PINNED_COPY)
        return self._usual_call(row) if stays and is_memcpy(self.trace.name(row)) else 0.0

    def _staged(self, point: SyncPoint, row: int) -> float:
        """How long the host fills the driver's staging buffers before the call that blocks: none of it stays if pinned.

        The call that copies pageable memory returns when the last of it is staged, and the synchronise behind it then
        waits for next to nothing.
        """
        if point.diagnosis.removal is not Removal.PINNED_COPY:
            return 0.0
        s, name = self.trace.slices, self.trace.name
        staging = [call for call in point.calls[: point.calls.index(row)] if is_memcpy(name(call))]
        return sum(max(0.0, float(s.dur[call]) - self._usual_call(call)) for call in staging)

    def _usual_call(self, row: int) -> float:
        """What a call of this name costs when it needn't wait: a low quantile of those in the trace."""
        name = self.trace.slices.name.item(row)
        if name not in self._usual:
            self._usual[name] = min(quantile(self.trace.lengths_like(row), 0.1), USUAL_CALL_NS)
        return self._usual[name]


def held_launches(trace: Trace, launches: Launches) -> list[ThreadInterval]:
    """Where launches took long because the launch queue was full: the replay waits there by itself."""
    held = held_by_queue(trace, launches.calls, launches.issued, launches.returned)
    found = np.flatnonzero(held)
    columns = (launches.tracks[found], launches.issued[found], launches.issued[found] + held[found])
    return [ThreadInterval(*interval) for interval in zip(*(c.tolist() for c in columns), strict=True)]
