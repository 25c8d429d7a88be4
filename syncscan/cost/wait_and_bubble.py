"""From a sync point to its measured cost: how long the host was blocked, how long the device then stood idle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np

from syncscan.cost.queued import Queued
from syncscan.model.device_work import DeviceWork
from syncscan.model.finding import Cost, SyncPoint
from syncscan.model.integrity import SOUND, Integrity
from syncscan.model.names import is_collective_kernel
from syncscan.model.runtime_calls import is_async_copy
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
    ruler = _Ruler(trace)
    waits = ruler.waits(points)
    bubbles = ruler.bubbles(points, waits)
    return tuple(Cost(w, b, ruler.communication(p, w)) for p, w, b in zip(points, waits, bubbles, strict=True))


class _Ruler:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.work = trace.kept(DeviceWork)
        self.queued = Queued(trace, self.work)
        self.collective = trace.named(is_collective_kernel)[trace.device_rows]
        self.communicates = bool(self.collective.any())
        self.computing = DeviceWork(trace, ~self.collective)

    def waits(self, points: Sequence[SyncPoint]) -> list[int]:
        """How long each sync point held the host, ns."""
        calls = np.array([row for point in points for row in point.calls], np.int64)
        each = zip(calls.tolist(), self.trace.works_of(calls).tolist(), strict=True)
        held = [sum(self._wait(point, *call) for call in islice(each, len(point.calls))) for point in points]
        # Calls of one thread follow one another, but not in a damaged trace.
        return [min(wait, point.end - point.ts) for wait, point in zip(held, points, strict=True)]

    def _wait(self, point: SyncPoint, row: int, own: int) -> int:
        """How long a call held the host, of which `own` is the device work."""
        s = self.trace.slices
        start, length = s.ts.item(row), s.dur.item(row)
        if point.awaited is None:
            return length
        before = min(point.awaited.before, start)
        ends = [self.work.of(*place).last_end(before) for place in point.awaited.streams]
        done = max([end for end in ends if end is not None], default=start)
        held = min(max(done - start, 0), length)
        if own == NONE:
            return held
        if "Pinned" in self.trace.name(own) and is_async_copy(self.trace.name(row)):
            return 0  # with pinned memory it returns at once: what waits is the synchronise behind it
        since = max(start + held, s.ts.item(own))
        return held + max(0, min(start + length, s.end.item(own)) - since)

    def communication(self, point: SyncPoint, wait: int) -> int:
        """How long of this wait the device was in collectives with nothing computed beside them."""
        if point.device == NONE or not wait or not self.communicates:
            return 0
        end = point.ts + wait
        busy = self.work.of(point.device).busy_within(point.ts, end)
        return busy - self.computing.of(point.device).busy_within(point.ts, end)

    def bubbles(self, points: Sequence[SyncPoint], waits: Sequence[int]) -> list[int]:
        blamed = self._blamed(points, waits)
        return [self._bubble(point) if at in blamed else 0 for at, point in enumerate(points)]

    def _blamed(self, points: Sequence[SyncPoint], waits: Sequence[int]) -> set[int]:
        """Of the syncs that waited, those that released their host last before some work began.

        With an earlier one of them gone, the later would have held the host all the same. Of threads that are released
        together it is the one that was held the longest.
        """
        held = [at for at, point in enumerate(points) if waits[at] and point.awaited]
        held.sort(key=lambda at: (points[at].released, waits[at]))
        return set({self._next_work(points[at]): at for at in held}.values())

    def _next_work(self, point: SyncPoint) -> tuple[int, int | None]:
        return point.device, self.work.of(point.device).next_begin(point.released)

    def _bubble(self, point: SyncPoint) -> int:
        device, until = self._next_work(point)
        if until is None:
            return 0
        launched = self.queued.waiting_from(device, until)
        if launched is not None and launched < point.end:
            until = min(until, launched)
        idle = until - self.work.of(device).idle_from(point.released)
        return max(0, min(idle, point.end - point.ts))
