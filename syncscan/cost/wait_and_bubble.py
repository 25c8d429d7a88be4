"""From a sync point to its measured cost: how long the host was blocked, how long the device then stood idle."""

from __future__ import annotations

from collections.abc import Iterable

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
    held in it. What is left is API overhead and wake-up. The bubble is the idle time of the device from G to the next
    sync point, as far as a host that had not been held could have filled it: at most the length of the call, and not
    while something that had been launched was waiting, which the device let lie itself. It takes in more than the first
    gap, because a host that was held has lost its lead and the device runs dry again and again.

    Returns:
        One cost a sync point, in their order.
    """
    points = tuple(points)
    if not integrity.waits:
        return (Cost(0, 0),) * len(points)
    ruler = _Ruler(trace, points)
    return tuple(ruler.cost(p) for p in points)


class _Ruler:
    def __init__(self, trace: Trace, points: tuple[SyncPoint, ...]) -> None:
        self.trace = trace
        self.starts = np.sort(np.array([p.ts for p in points], dtype=np.int64))
        self.work = DeviceWork(trace)
        self.queued = Queued(trace, self.work)
        self.collective = trace.named(is_collective_kernel)[trace.device_rows]
        self.computing = DeviceWork(trace, ~self.collective)

    def cost(self, point: SyncPoint) -> Cost:
        wait = sum(self._wait(point, row) for row in point.calls)
        return Cost(wait, self._bubble(point), self._communication(point, wait))

    def _wait(self, point: SyncPoint, row: int) -> int:
        s = self.trace.slices
        start, length = int(s.ts[row]), int(s.dur[row])
        if point.awaited is None:
            return length
        before = min(point.awaited.before, start)
        ends = (self.work.of(*place).last_end(before) for place in point.awaited.streams)
        done = max((end for end in ends if end is not None), default=start)
        held = min(max(done - start, 0), length)
        own = self.trace.work_of(row)
        if own == NONE:
            return held
        if "Pinned" in self.trace.name(own) and is_async_copy(self.trace.name(row)):
            return 0  # with pinned memory it returns at once: what waits is the synchronise behind it
        since = max(start + held, int(s.ts[own]))
        return held + max(0, min(start + length, int(s.ts[own] + s.dur[own])) - since)

    def _communication(self, point: SyncPoint, wait: int) -> int:
        """How long of this wait the device was in collectives with nothing computed beside them."""
        if point.device == NONE or not wait or not self.collective.any():
            return 0
        end = point.ts + wait
        busy = self.work.of(point.device).busy_within(point.ts, end)
        return busy - self.computing.of(point.device).busy_within(point.ts, end)

    def _bubble(self, point: SyncPoint) -> int:
        if point.awaited is None:
            return 0
        work, since = self.work.of(point.device), point.released
        if not len(work.busy_to):
            return 0
        until = min(self._next_sync(point.end), default=int(work.busy_to[-1]))
        idle = until - since - work.busy_within(since, until)
        if idle <= 0:
            return 0
        idle -= self.queued.idle(point.device, since, until, point.end)
        return max(0, min(idle, point.end - point.ts))

    def _next_sync(self, ts: int) -> list[int]:
        """When the next sync point of any thread begins; empty without one."""
        after = int(np.searchsorted(self.starts, ts))
        found: list[int] = self.starts[after : after + 1].tolist()
        return found
