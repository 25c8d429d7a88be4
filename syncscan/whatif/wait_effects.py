"""Measure the waits of sync points: which call blocked the host, what it waited for, what else it costs.

A copy of pageable memory goes through a staging buffer of the driver, at the speed of the host's memcpy; a pinned one
runs at the speed of the link (CUDA Best Practices Guide, "Pinned Memory").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from syncscan.facts.period import waits_before
from syncscan.facts.profiler_work import HOST_NS
from syncscan.facts.slow_launches import held_by_queue
from syncscan.model.arrays import distinct, median, quantile
from syncscan.model.finding import Removal, Replacement, SyncPoint
from syncscan.model.interval import Interval, ThreadInterval
from syncscan.model.rank import WaitNode
from syncscan.model.runtime_calls import allocates, frees, is_memcpy, is_query
from syncscan.model.slice_names import is_torch_op
from syncscan.model.trace import NONE, Category, Trace
from syncscan.whatif.events import EventRecord
from syncscan.whatif.launch_gaps import Launches
from syncscan.whatif.spared_work import around

USUAL_CALL_NS = 10_000.0
"""Most time of a runtime call without a wait if the trace has no shorter call of its name."""
USUAL_WAKE_NS = 10_000.0
"""Time from the device's end until the host continues if the trace has no wait to measure it."""
MAX_WAKE_NS = 200_000.0
"""A longer wake-up has another cause (another thread, the GIL) and stays the host's own time."""


READS = frozenset({"aten::is_nonzero", "aten::item", "aten::_local_scalar_dense"})
"""Ops that only bring a number to the host."""


class NumberedPoint(NamedTuple):
    """A sync point, the number of its finding (NONE for one that can't be removed), and its fix's work."""

    finding: int
    point: SyncPoint
    replacement: Replacement = Replacement.UNKNOWN


class WaitEffect(WaitNode, frozen=True, kw_only=True):
    """A sync point as a wait of its thread; a program's writer says when: `thread`, `host_ns` and `event`."""

    thread: int = 0
    host_ns: float = 0.0
    event: int = NONE
    track: int = 0
    interval: Interval = Interval(0, 0)
    """In it, the thread's time in the trace isn't its own."""
    awaited: EventRecord | None = None
    """The point that it waited for, if an event marks it."""
    waited_ns: float = 0.0
    """How long it waited in the trace."""


def find_waits(trace: Trace, launches: Launches, points: Sequence[NumberedPoint]) -> list[WaitEffect]:
    """Measure every sync point; those that didn't wait get the usual wake-up time of those that did."""
    ruler = _EffectMeter(trace, launches, [p.point for p in points])
    waits = [ruler.wait(p.finding, p.point, *awaited) for p, awaited in zip(points, ruler.awaited(), strict=True)]
    wakes = [w.wake_ns for w in waits if w.waited_ns > 0]
    usual = median(wakes) if wakes else USUAL_WAKE_NS
    op = [_outermost(trace, p.point) for p in points]
    of_op = _own_times(trace, op, waits)
    of_read = _own_times(trace, [_read(trace, p.point, row) for p, row in zip(points, op, strict=True)], waits)
    spared = around(trace, [p.point.diagnosis.removal for p in points], op, of_op)
    measured = [
        replace(
            w,
            wake_ns=w.wake_ns if w.waited_ns > 0 else usual,
            read_ns=w.read_ns + read,
            op_ns=whole + (more.length - int(trace.slices.dur[row]) if more else 0),
        )
        for w, row, read, whole, more in zip(waits, op, of_read, of_op, spared, strict=True)
    ]
    return _with_fixes(trace, launches, points, measured, op, spared)


def _with_fixes(
    trace: Trace,
    launches: Launches,
    points: Sequence[NumberedPoint],
    waits: Sequence[WaitEffect],
    outermost: Sequence[int],
    spared: Sequence[Interval | None],
) -> list[WaitEffect]:
    """Return the waits with what goes with their fixes, where the rule says what comes in the op's place."""
    if all(p.replacement is Replacement.UNKNOWN for p in points):
        return list(waits)
    ops = [_replaced(trace, p.point, row) for p, row in zip(points, outermost, strict=True)]
    of_ops, coming_ns = _own_times(trace, ops, waits), _launching_op(trace, launches)
    fixed = []
    for p, wait, row, outer, more, own_ns in zip(points, waits, ops, outermost, spared, of_ops, strict=True):
        if row == NONE or not own_ns or p.replacement is Replacement.UNKNOWN:
            fixed.append(wait)
        elif p.replacement is Replacement.OP:
            # what comes takes no more than what goes: a read's op takes 8 to 11 µs, one that adds it up 5 to 8 (H200)
            fixed.append(replace(wait, fix=(max(0.0, own_ns - coming_ns), wait.left_ns, wait.copy, wait.copy_ns)))
        else:
            begin, end = more if more and row == outer else (int(trace.slices.ts[row]), int(trace.slices.end[row]))
            ns = own_ns + end - begin - int(trace.slices.dur[row])
            fixed.append(replace(wait, fix=(ns, 0.0, *launches.work_of(wait.track, Interval(begin, end)))))
    return fixed


_COPYING = frozenset({"aten::to", "aten::_to_copy", "aten::copy_"})


def _replaced(trace: Trace, point: SyncPoint, outermost: int) -> int:
    """Return the op that a fix replaces: of one that needs a tensor of the host's, only the copy of that; NONE if none.

    `x[index]` with an index on the host copies the index, and then indexes.
    """
    if outermost == NONE or point.direction != "HtoD":
        return outermost
    return next((row for row in point.ops if trace.name(row) in _COPYING), outermost)


def _launching_op(trace: Trace, launches: Launches) -> float:
    """Return the host's usual time in an op that launches something itself, ns."""
    rows = trace.slices.parent[launches.calls]
    rows = distinct(rows[rows != NONE])
    rows = rows[trace.slices.category[rows] == Category.CPU_OP]
    return median(trace.slices.dur[rows]) if len(rows) else 0.0


def _own_times(trace: Trace, ops: Sequence[int], waits: Sequence[WaitEffect]) -> list[float]:
    """Return the host's time in each wait's op without all waits in that op; 0 except for the op's first wait."""
    lengths = trace.slices.dur.take(np.array(ops, np.int64)).tolist()
    times: dict[int, float] = {}
    for op, length, wait in zip(ops, lengths, waits, strict=True):
        if op != NONE:
            times[op] = times.get(op, float(length)) - (wait.interval[1] - wait.interval[0])
    return [max(0.0, times.pop(op, 0.0)) for op in ops]


def _outermost(trace: Trace, point: SyncPoint) -> int:
    """Return the outermost of torch's own ops around a sync point, or NONE, that is, what the program calls.

    NONE for a call of the allocator, since whatever requested memory stays.
    """
    call = trace.name(point.calls[0])
    if frees(call) or allocates(call):
        return NONE
    for row in point.ops:
        if is_torch_op(trace.name(row)):
            return row
    return NONE


def _read(trace: Trace, point: SyncPoint, outermost: int) -> int:
    """Return the op that goes with a removed sync point, NONE if all of it stays.

    Nothing stays of a read-back: without a profiler, `.item()` takes the host 8 to 11 µs on an idle device, and the
    `detach()` in its place 0.5 µs (H200, torch 2.11). If the kernels stay, only the read inside their op goes.
    """
    if point.diagnosis.removal is Removal.NOTHING:
        return outermost
    if point.diagnosis.removal is Removal.KERNELS:
        return next((row for row in point.ops if trace.name(row) in READS), NONE)
    return NONE


class _EffectMeter:
    def __init__(self, trace: Trace, launches: Launches, points: Sequence[SyncPoint]) -> None:
        self.trace, self.launches, self.points = trace, launches, points
        calls = [call for point in points for call in point.calls]
        rows = np.array(calls, np.int64)
        self.copies = Copies(trace, calls)
        self._begin = dict(zip(calls, trace.slices.ts.take(rows).tolist(), strict=True))
        self._end = dict(zip(calls, trace.slices.end.take(rows).tolist(), strict=True))
        self._usual: dict[int, float] = {}

    def wait(
        self, finding: int, point: SyncPoint, streams: tuple[int, ...], done: int, event: EventRecord | None
    ) -> WaitEffect:
        last, row = self._end[point.calls[-1]], self._blocking(point, done)
        start, end = self._begin[row], self._end[row]
        if is_query(point.api):  # a loop of queries waits, and none of them does
            start = point.ts
        waited = done > start
        wake = min(max(float(end - done), 0.0), MAX_WAKE_NS) if waited else 0.0
        # what the host lost beyond that between waking up and returning is its own time again
        own_ns = int(end - done - wake) if waited and end > done else 0
        copy, saved = self._copy(point)
        # an asynchronous copy must still be launched
        stays = point.diagnosis.removal in (Removal.ASYNC_COPY, Removal.PINNED_COPY)
        length = float(end - start - self._before(point.track, start, end))
        return WaitEffect(
            track=point.track,
            interval=Interval(start, max(last - own_ns, start)),
            streams=streams,
            awaited=event,
            call_ns=min(length, self._usual_call(row)) if waited else length,
            wake_ns=wake,
            after_ns=float(last - end),
            left_ns=self._usual_call(row) if stays and is_memcpy(self.trace.name(row)) else 0.0,
            finding=finding,
            waited_ns=float(max(0, done - start)),
            read_ns=self._staged(point, row),
            copy=copy,
            copy_ns=saved,
        )

    def _before(self, track: int, start: int, end: int) -> int:
        """Return how long a call waited for launches from before the first step, which is time of no step, ns."""
        waits = (min(end, to) - max(start, since) for on, since, to in waits_before(self.trace) if on == track)
        return sum(max(0, ns) for ns in waits)

    def _copy(self, point: SyncPoint) -> tuple[int, float]:
        """Return the stream of its copy (or NONE), and how much of the copy the removal saves, ns."""
        of = self.copies.whole if point.diagnosis.removal is Removal.NOTHING else self.copies.saved
        for row in point.calls:
            copy = of(row)
            if copy and copy[0] in self.launches.streams:
                return self.launches.streams.index(copy[0]), copy[1]
        return NONE, 0.0

    def awaited(self) -> Iterator[tuple[tuple[int, ...], int, EventRecord | None]]:
        """Yield the streams that each sync point waited for, when they were done (ns; 0 without work), and the event.

        Work of steps that aren't replayed doesn't count.
        """
        places = list(enumerate(self.launches.streams))
        streams = [tuple(n for n, place in places if p.awaited and place in p.awaited.streams) for p in self.points]
        before = [point.awaited.before if point.awaited else 0 for point in self.points]
        ended = [[self.launches.done(k, ts) for ts in before] for k in range(len(self.launches.streams))]
        done = [max([ended[number][at] for number in numbers], default=0) for at, numbers in enumerate(streams)]
        drains = {point.api for point, at in zip(self.points, done, strict=True) if self._begin[point.calls[0]] < at}
        for at, (point, numbers) in enumerate(zip(self.points, streams, strict=True)):
            if allocates(point.api) and point.api not in drains:
                yield (), 0, None
                continue
            of_event = numbers and point.awaited and point.awaited.of_event
            yield numbers, done[at], EventRecord(before[at], numbers[0]) if of_event else None

    def _blocking(self, point: SyncPoint, done: int) -> int:
        """Return the call that was in progress when the awaited work ended; the last one without any.

        A call that had returned by then counts within HOST_NS only if no other does, since the copy of a read-back
        returns before its synchronize does the waiting.
        """
        for skew in (0, HOST_NS):
            for row in point.calls:
                if self._begin[row] < done <= self._end[row] + skew:
                    return row
        return point.calls[-1]

    def _staged(self, point: SyncPoint, row: int) -> float:
        """Return how long the host fills the driver's staging buffers before the blocking call, which pinning saves.

        The call that copies pageable memory returns when the last of it is staged, and the synchronize after it then
        waits for next to nothing.
        """
        if point.diagnosis.removal is not Removal.PINNED_COPY:
            return 0.0
        s, name = self.trace.slices, self.trace.name
        staging = [call for call in point.calls[: point.calls.index(row)] if is_memcpy(name(call))]
        return sum(max(0.0, float(s.dur[call]) - self._usual_call(call)) for call in staging)

    def _usual_call(self, row: int) -> float:
        """Return the cost of a call of this name without a wait: a low quantile of those in the trace."""
        name = self.trace.slices.name.item(row)
        if name not in self._usual:
            self._usual[name] = min(quantile(self.trace.lengths_like(row), 0.1), USUAL_CALL_NS)
        return self._usual[name]


def held_launches(trace: Trace, launches: Launches) -> list[ThreadInterval]:
    """Return where launches took long because the launch queue was full; the replay models that wait itself."""
    held = held_by_queue(trace, launches.calls, launches.issued, launches.returned)
    long = np.flatnonzero(held)
    columns = (launches.tracks[long], launches.issued[long], launches.issued[long] + held[long])
    return [ThreadInterval(*interval) for interval in zip(*(c.tolist() for c in columns), strict=True)]


LINK = {9: 50.0, 8: 24.0, 7: 12.0}
"""Practical bytes per ns of a PCIe x16 link by compute capability: Hopper and newer have PCIe 5, Ampere 4, Volta 3."""
LARGE = 1_000_000
"""Bytes from which a pinned copy is long enough to measure the link."""


class Copies:
    """The copies that some calls of a trace launch, and the speed of its link."""

    def __init__(self, trace: Trace, calls: Sequence[int]) -> None:
        self.trace = trace
        rows = np.array(calls, np.int64)
        self._row = dict(zip(calls, trace.copies_of(rows).tolist(), strict=True))
        self._name = dict(zip(calls, trace.copy_names(rows), strict=True))
        self._speed: dict[str, float | None] = {}

    def whole(self, call: int) -> tuple[tuple[int, int], float] | None:
        """Return (device, stream) and length in ns of the copy to the host that this call launches, for a read-back."""
        row = self._row[call]
        if row == NONE or "DtoH" not in self._name[call]:
            return None
        s = self.trace.slices
        return (int(s.device[row]), int(s.stream[row])), float(s.dur[row])

    def saved(self, call: int) -> tuple[tuple[int, int], float] | None:
        """Return the (device, stream) of the pageable copy that this call launches, and what pinning saves, in ns."""
        row = self._row[call]
        if row == NONE:
            return None
        s, name = self.trace.slices, self.trace.name(row)
        if "Pageable" not in name or s.bytes[row] <= 0:
            return None
        speed = self._link(name.split()[1])
        pinned = float(s.bytes[row]) / speed if speed else float(s.dur[row])
        return (int(s.device[row]), int(s.stream[row])), max(0.0, float(s.dur[row]) - pinned)

    def _link(self, direction: str) -> float | None:
        """Return bytes per ns, from the trace's large pinned copies in this direction, else by device generation."""
        if direction not in self._speed:
            s = self.trace.slices
            copies = self.trace.where(lambda n: "Pinned" in n and n.split()[1:2] == [direction], Category.MEMCPY)
            copies = copies[(s.correlation[copies] != NONE) & (s.bytes[copies] >= LARGE)]
            speeds = s.bytes[copies] / np.maximum(1.0, s.dur[copies])
            generation = self.trace.info.compute_capability
            by_generation = LINK.get(min(generation[0], max(LINK))) if generation else None
            self._speed[direction] = float(speeds.max()) if len(copies) else by_generation
        return self._speed[direction]
