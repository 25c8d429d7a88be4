"""From a sync point to its measured cost: how long the host was blocked, how long the device then stood idle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from syncscan.cost.queued import Queued
from syncscan.facts.device_work import DeviceWork, communicating
from syncscan.facts.period import earlier_work, waited_before
from syncscan.model.arrays import Int64, distinct, grouped
from syncscan.model.finding import Awaited, Cost, Place, SyncPoint
from syncscan.model.integrity import SOUND, Integrity
from syncscan.model.runtime_calls import is_async_copy, is_query
from syncscan.model.trace import NONE, Trace


def costs_of(trace: Trace, points: Iterable[SyncPoint], integrity: Integrity = SOUND) -> tuple[Cost, ...]:
    """Measure each sync point.

    The wait of a call that lasts from s to e is the part of it during which work launched before s still ran on what it
    waits for: min(e, G) - s, with G the end of that work; the call's own copy or kernel counts while the host is
    held in it. What is left is API overhead and wake-up. The bubble is the idle time of the device from G until its
    next work begins, as far as a host that had not been held could have filled it: at most the length of the call, and
    not while something that had been launched was waiting, which the device let lie itself. It ends there because from
    then on the host is free, and that the device runs dry once more is its own pace. Idle time is blamed once, on the
    sync that released its host last before it, and never on one that didn't wait.

    Returns:
        One cost a sync point, in their order.
    """
    points = tuple(points)
    if not integrity.waits:
        return (Cost(0, 0),) * len(points)
    ruler = _Ruler(trace, points)
    waits = ruler.waits()
    columns = ruler.in_steps(waits), ruler.bubbles(waits), ruler.communication(waits)
    return tuple(map(Cost, *(column.tolist() for column in columns)))


class _Ruler:
    """Measures these sync points of a trace; its columns have one entry for each of them."""

    def __init__(self, trace: Trace, points: Sequence[SyncPoint]) -> None:
        self.trace, self.points = trace, points
        self.work = trace.kept(DeviceWork)
        self.queued = Queued(trace, self.work)
        self.begin = np.array([point.ts for point in points], np.int64)
        self.end = np.array([point.end for point in points], np.int64)
        self.device = np.array([point.device for point in points], np.int64)
        self.known = np.array([point.awaited is not None for point in points], np.bool_)
        """Whether anybody knows what it waited for."""
        self.awaited = [point.awaited or _NOTHING for point in points]
        self.copy_held = np.array([each.copy_held for each in self.awaited], np.int64)

    def waits(self) -> Int64:
        """How long each sync point held the host, ns."""
        each = [point.calls for point in self.points]
        calls = np.array(list(chain.from_iterable(each)), np.int64)
        point_of = np.repeat(np.arange(len(each)), list(map(len, each)))
        held = np.zeros(len(self.points), np.int64)
        np.add.at(held, point_of, self._each(calls, point_of))
        polls = np.array([is_query(point.api) for point in self.points], np.bool_)
        if polls.any():  # what holds the host lies between its queries
            done = np.array([each.done or 0 for each in self.awaited], np.int64)
            held = np.where(polls, done - self.begin, held)
        # Calls of one thread follow one another, but not in a damaged trace.
        waits: Int64 = np.minimum(held, self.end - self.begin)
        return waits

    def in_steps(self, waits: Int64) -> Int64:
        """These waits without what they wait for launches from before the steps, as far as no step's time holds that.

        Where the device first works off earlier launches, that time is none of the steps', see `step_period`.
        """
        left_out, earlier = waited_before(self.trace), earlier_work(self.trace)
        if not left_out or earlier is None:
            return waits
        order = np.argsort(self.begin, kind="stable")
        over = np.clip(np.minimum(self.begin + waits, earlier.end) - np.maximum(self.begin, earlier.begin), 0, None)
        before = np.cumsum(over[order]) - over[order]
        kept = waits.copy()
        kept[order] -= np.clip(left_out - before, 0, over[order])
        return kept

    def _each(self, calls: Int64, point_of: Int64) -> Int64:
        """How long each call held the host; of each the place of the sync point that it belongs to."""
        s = self.trace.slices
        start, length, own = s.ts[calls], s.dur[calls], self.trace.works_of(calls)
        done = np.maximum(self._done(start, point_of), np.where(own == NONE, 0, self.copy_held[point_of]))
        held = np.minimum(np.maximum(done - start, 0), length)
        since = np.maximum(start + held, s.ts[own])
        with_own = held + np.maximum(0, np.minimum(start + length, s.end[own]) - since)
        # With pinned memory it returns at once: what waits is the synchronise behind it.
        pinned = self.trace.called(own, _is_pinned) & self.trace.called(calls, is_async_copy)
        held = np.where(own == NONE, held, np.where(pinned, 0, with_own))
        return np.where(self.known[point_of], held, length)

    def _done(self, start: Int64, point_of: Int64) -> Int64:
        """When what each call waited for was done, as far as it was launched before; else when it began."""
        launched = np.minimum(start, np.array([each.before for each in self.awaited], np.int64)[point_of])
        streams, first = [each.streams for each in self.awaited], dict[tuple[Place, ...], int]()
        like = np.array(list(map(first.setdefault, streams, range(len(streams)))), np.int64)
        done = start.copy()
        for point, calls in grouped(like[point_of]):  # most wait for the same few streams as an earlier one
            for place in streams[point]:
                ends, some = self.work.of(*place).last_ends(launched[calls])
                done[calls] = np.where(some, np.maximum(done[calls], ends), done[calls])
        return done

    def communication(self, waits: Int64) -> Int64:
        """How long of each wait the device was in collectives with nothing computed beside them."""
        found, collective = np.zeros_like(waits), communicating(self.trace)
        if not collective.any():
            return found
        computing = DeviceWork(self.trace, ~collective)
        for at in np.flatnonzero(waits).tolist():
            device, begin = self.device.item(at), self.begin.item(at)
            if device != NONE:
                end = begin + waits.item(at)
                busy = self.work.of(device).busy_within(begin, end)
                found[at] = busy - computing.of(device).busy_within(begin, end)
        return found

    def bubbles(self, waits: Int64) -> Int64:
        """How long the device stood idle for each; see `costs_of`."""
        bubbles = np.zeros_like(waits)
        waited = (waits != 0) & self.known
        all_released = self._released()
        for device in distinct(self.device[waited]).tolist():
            places = np.flatnonzero(waited & (self.device == device))
            released = all_released[places]
            # Of threads that are released together it is the one that was held the longest.
            order = np.lexsort((waits[places], released))
            self._blame(device, places[order], released[order], bubbles)
        return bubbles

    def _released(self) -> Int64:
        """From when on nothing held each one's thread, see `SyncPoint.released`."""
        done = [_UNKNOWN if each.done is None else each.done for each in self.awaited]
        released: Int64 = np.minimum(np.maximum(np.array(done, np.int64), self.begin), self.end)
        return released

    def _blame(self, device: int, places: Int64, released: Int64, bubbles: Int64) -> None:
        """Give the idle time before each piece of work to the last to have been released before it.

        With an earlier one gone, it would have held the host all the same.

        Args:
            device: on which they waited.
            places: of the sync points that waited, in order of their release.
            released: when that was, ns.
            bubbles: of each point, to be filled in.
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
"""Earlier than any time: what was done then held no thread."""


def _is_pinned(name: str) -> bool:
    return "Pinned" in name
