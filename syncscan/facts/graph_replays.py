"""From a graph's replays to those of which a part isn't recorded: behind their kernels the device is held by nothing.

CUPTI may leave kernels of graphs out (AMD-AGI/TraceLens#728). Then what is behind a replay on its stream begins long
after the last of its recorded kernels, or a synchronise returns long after it, and the device looks idle meanwhile.
"""

from __future__ import annotations

import numpy as np

from syncscan.facts.device_work import DeviceWork
from syncscan.model.arrays import Int64
from syncscan.model.runtime_calls import is_synchronize
from syncscan.model.trace import CALLS, NONE, Trace

HELD_NS = 250_000
"""Longer than that something held the device: behind 80 whole replays in our recordings it is 12 µs at the most, and
the slowest launch on an idle device began its work after 247 µs."""
LOOKED_AT = 256
"""Replays that are looked at, from the first to the last, so that no trace of a server takes long."""
EXPLAINED = 2
"""One part in so many of the time, if any stream works in it, explains why the work behind a replay had to wait."""


def partly_recorded(trace: Trace, replays: Int64) -> list[int]:
    """How long the device seems to be held by nothing behind each of these replays, ns; 0 where it isn't.

    Args:
        trace: any trace.
        replays: rows of graph launches that have work in the trace; of many some are looked at.
    """
    some = replays[np.linspace(0, len(replays) - 1, min(len(replays), LOOKED_AT)).astype(np.int64)]
    held = _Held(trace)
    return [
        held.behind(replay, work) for replay, work in zip(some.tolist(), trace.works_of(some).tolist(), strict=True)
    ]


class _Held:
    """Measures the time behind replays in which nothing works and something waits."""

    def __init__(self, trace: Trace) -> None:
        self._trace, self._work = trace, trace.kept(DeviceWork)
        s, syncs = trace.slices, trace.where(is_synchronize, *CALLS)
        self._syncs = syncs[np.argsort(s.ts[syncs], kind="stable")]
        self._synced_at = s.ts[self._syncs]

    def behind(self, replay: int, last: int) -> int:
        """The time behind one replay, of whose work this is the last."""
        s = self._trace.slices
        device, stream = s.device.item(last), s.stream.item(last)
        work = self._work.of(device, stream)
        done, returned = s.end.item(last), s.end.item(replay)
        following = int(work.launched.searchsorted(s.ts.item(replay), side="right"))
        sync = self._sync_behind(replay)
        if following < len(work.rows):
            row = int(work.rows[following])
            call = int(self._trace.calls_of(np.array([row])).item())
            launched = s.end.item(call) if call != NONE else work.launched.item(following)
            if sync == NONE or work.launched.item(following) < s.ts.item(sync):
                return self._idle(device, max(done, launched, returned), s.ts.item(row))
        return 0 if sync == NONE else self._idle(device, max(done, s.ts.item(sync)), s.end.item(sync))

    def _sync_behind(self, replay: int) -> int:
        """The first synchronise that the replay's thread makes behind it; NONE without."""
        s = self._trace.slices
        first = int(self._synced_at.searchsorted(s.end.item(replay)))
        rows = self._syncs[first : first + LOOKED_AT]
        own = rows[s.track[rows] == s.track.item(replay)]
        return int(own[0]) if len(own) else NONE

    def _idle(self, device: int, begin: int, end: int) -> int:
        """How long this time is, if it is long and the device works in little of it; else 0."""
        if end - begin <= HELD_NS:
            return 0
        busy = self._work.of(device).busy_within(begin, end)
        return end - begin if EXPLAINED * busy < end - begin else 0


__all__ = ["partly_recorded"]
