"""Measure what a sync point costs: how long it blocked the host, and how long the device was idle afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
from msgspec.structs import replace

from syncscan.facts.device_work import DeviceWork, communicating
from syncscan.facts.period import waits_before
from syncscan.model.arrays import Int64, distinct, grouped
from syncscan.model.finding import Awaited, Place, SyncPoint
from syncscan.model.runtime_calls import is_async_copy, is_query, waits_by_nature
from syncscan.model.step import SOUND, Integrity
from syncscan.model.trace import NONE, Trace

_NEVER = np.iinfo(np.int64).max


class Queued:
    """When the work of each device was launched and when it started.

    Work whose launch isn't in the trace is left out, since it is unknown whether it was queued.
    """

    def __init__(self, trace: Trace, work: DeviceWork) -> None:
        self._trace, self._work = trace, work
        self._launches: dict[int, tuple[Int64, Int64]] = {}

    def waiting_from(self, device: int, times: Int64) -> Int64:
        """Return the earliest launch, ns, of the work that begins at or after each time: work was queued from then on.

        The result is later than any time where no more work begins.
        """
        if device not in self._launches:
            self._launches[device] = self._ordered(device)
        starts, earliest = self._launches[device]
        return np.append(earliest, _NEVER)[np.searchsorted(starts, times)]

    def _ordered(self, device: int) -> tuple[Int64, Int64]:
        """Return when work started, ascending, and the earliest launch from there on."""
        work, slices = self._work.of(device), self._trace.slices
        linked = np.zeros(len(slices), np.bool_)
        linked[self._trace.device_rows[self._trace.device_calls != NONE]] = True
        known = linked[work.rows]
        starts, launched = slices.ts[work.rows[known]], work.launched[known]
        if (starts[1:] >= starts[:-1]).all():  # as on one stream: no work starts before work that was launched earlier
            return starts, launched
        order = np.argsort(starts, kind="stable")
        earliest = np.minimum.accumulate(launched[order][::-1])[::-1]
        return starts[order], earliest


def measured(trace: Trace, points: Iterable[SyncPoint], integrity: Integrity = SOUND) -> tuple[SyncPoint, ...]:
    """Return the sync points with their waits and bubbles; none where the trace can't tell them.

    The wait of a call from s to e is the part during which work launched before s still ran on what the call waits for:
    min(e, G) - s, where G is the end of that work. The call's own copy or kernel counts while the host is blocked in
    it. The rest is API overhead and wake-up. The bubble is the device's idle time from G until its next work begins, as
    far as an unblocked host could have filled it: at most the length of the call, and not while launched work was
    queued, since that delay is the device's own. It ends at the next work, because the host is free from then on, and a
    device that runs dry again does so at the host's own pace. Idle time is attributed once, to the sync that last
    released its host before it, and never to a sync that didn't wait.
    """
    points = tuple(points)
    if not integrity.waits:
        return points
    ruler = _WaitMeter(trace, points)
    waits = ruler.waits()
    columns = (column.tolist() for column in (waits, ruler.bubbles(waits), ruler.communication(waits)))
    return tuple(
        replace(point, wait_ns=wait, bubble_ns=bubble, communication_ns=communication)
        for point, wait, bubble, communication in zip(points, *columns, strict=True)
    )


class _WaitMeter:
    """Measures the sync points of a trace; columns have one entry per sync point."""

    def __init__(self, trace: Trace, points: Sequence[SyncPoint]) -> None:
        self.trace, self.points = trace, points
        self.work = trace.cached(DeviceWork)
        self.queued = Queued(trace, self.work)
        self.begin = np.array([point.ts for point in points], np.int64)
        self.end = np.array([point.end for point in points], np.int64)
        self.device = np.array([point.device for point in points], np.int64)
        self.known = np.array([point.awaited is not None for point in points], np.bool_)
        """Whether it is known what the sync point waited for."""
        self.awaited = [point.awaited or _NOTHING for point in points]
        self.copy_held = np.array([awaited.copy_held for awaited in self.awaited], np.int64)

    def waits(self) -> Int64:
        call_rows = [point.calls for point in self.points]
        calls = np.array(list(chain.from_iterable(call_rows)), np.int64)
        point_of = np.repeat(np.arange(len(call_rows)), list(map(len, call_rows)))
        held = np.zeros(len(self.points), np.int64)
        np.add.at(held, point_of, self._each(calls, point_of))
        polls = np.array([is_query(point.api) for point in self.points], np.bool_)
        if polls.any():  # the host is blocked between the queries
            done = np.array([awaited.done or 0 for awaited in self.awaited], np.int64)
            held = np.where(polls, done - self.begin, held)
        # Calls of one thread follow one another, but not in a damaged trace.
        waits: Int64 = np.minimum(held, self.end - self.begin)
        return waits

    def _each(self, calls: Int64, point_of: Int64) -> Int64:
        """Return how long each call blocked the host; `point_of` has the index of each call's sync point."""
        s = self.trace.slices
        start, length, works = s.ts[calls], s.dur[calls], self.trace.works_of(calls)
        done = np.maximum(self._done(start, point_of), np.where(works == NONE, 0, self.copy_held[point_of]))
        done = np.maximum(done, self._earlier_done(calls))
        held = np.minimum(np.maximum(done - start, 0), length)
        since = np.maximum(start + held, s.ts[works])
        with_own = held + np.maximum(0, np.minimum(start + length, s.end[works]) - since)
        # With pinned memory it returns at once, and the synchronize behind it waits.
        pinned = self.trace.called(works, lambda name: "Pinned" in name) & self.trace.called(calls, is_async_copy)
        held = np.where(works == NONE, held, np.where(pinned, 0, with_own))
        return np.where(self.known[point_of], held, length)

    def _earlier_done(self, calls: Int64) -> Int64:
        """Return until when each call waited for launches from before the first step, which may not be recorded."""
        s, done = self.trace.slices, np.zeros(len(calls), np.int64)
        for track, begin, end in waits_before(self.trace):
            inside = (s.track[calls] == track) & (s.ts[calls] < end) & (s.end[calls] > begin)
            done[inside & self.trace.called(calls, waits_by_nature)] = end
        return done

    def _done(self, start: Int64, point_of: Int64) -> Int64:
        """Return when the work that each call waits for was done; the call's begin if none was launched before it."""
        launched = np.minimum(start, np.array([awaited.before for awaited in self.awaited], np.int64)[point_of])
        streams, first = [awaited.streams for awaited in self.awaited], dict[tuple[Place, ...], int]()
        like = np.array(list(map(first.setdefault, streams, range(len(streams)))), np.int64)
        done: Int64 = start.copy()
        for point, calls in grouped(like[point_of]):  # most wait for the same few streams as an earlier one
            for place in streams[point]:
                ends, some = self.work.of(*place).last_ends(launched[calls])
                done[calls] = np.where(some, np.maximum(done[calls], ends), done[calls])
        return done

    def communication(self, waits: Int64) -> Int64:
        """Return how much of each wait the device spent in collectives that no computation overlapped."""
        times, collective = np.zeros_like(waits), communicating(self.trace)
        if not collective.any():
            return times
        computing = DeviceWork(self.trace, ~collective)
        for at in np.flatnonzero(waits).tolist():
            device, begin = self.device.item(at), self.begin.item(at)
            if device != NONE:
                end = begin + waits.item(at)
                busy = self.work.of(device).busy.between(begin, end)
                times[at] = busy - computing.of(device).busy.between(begin, end)
        return times

    def bubbles(self, waits: Int64) -> Int64:
        """Return the device's idle time that each sync point caused; see `measured`."""
        bubbles = np.zeros_like(waits)
        waited = (waits != 0) & self.known
        all_released = self._released()
        for device in distinct(self.device[waited]).tolist():
            places = np.flatnonzero(waited & (self.device == device))
            released = all_released[places]
            # Of threads that are released together, the one blocked the longest counts.
            order = np.lexsort((waits[places], released))
            self._blame(device, places[order], released[order], bubbles)
        return bubbles

    def _released(self) -> Int64:
        """Return when each sync point's thread was released; see `SyncPoint.released`."""
        done = [_UNKNOWN if awaited.done is None else awaited.done for awaited in self.awaited]
        released: Int64 = np.minimum(np.maximum(np.array(done, np.int64), self.begin), self.end)
        return released

    def _blame(self, device: int, places: Int64, released: Int64, bubbles: Int64) -> None:
        """Attribute the idle time before each piece of work to the sync that was last released before it.

        Without an earlier one, this one would still have blocked the host.

        `places` are indices of the sync points that waited, in order of release (`released`, ns).
        """
        work = self.work.of(device)
        following = work.begins.searchsorted(released)
        blamed = np.append(following[1:] != following[:-1], True) & (following < len(work.begins))
        places, released, until = places[blamed], released[blamed], work.begins[following[blamed]]
        begin, end = self.begin[places], self.end[places]
        launched = self.queued.waiting_from(device, until)
        until = np.where(launched < end, np.minimum(until, launched), until)
        idle = until - work.idle_from(released)
        bubbles[places] = np.maximum(0, np.minimum(idle, end - begin))


_NOTHING = Awaited((), 0, None)
_UNKNOWN = np.iinfo(np.int64).min
"""A time before any other: work that ended then blocked no thread."""
