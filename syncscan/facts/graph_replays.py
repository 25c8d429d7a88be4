"""Find graph replays with unrecorded kernels: after them the device is idle for no visible reason.

CUPTI may leave out kernels of graphs (AMD-AGI/TraceLens#728). Then the next work on the replay's stream begins long
after the last recorded kernel, or a synchronize returns long after it, and the device looks idle meanwhile.
"""

from __future__ import annotations

import numpy as np

from syncscan.facts.device_work import DeviceWork
from syncscan.model.arrays import Int64
from syncscan.model.runtime_calls import is_synchronize
from syncscan.model.trace import CALLS, NONE, Trace

HELD_NS = 250_000
"""A longer pause means that something blocked the device. After 80 whole replays in our recordings it is at most 12 µs,
and the slowest launch on an idle device began its work after 247 µs."""
LOOKED_AT = 256
"""Number of replays that are checked, spread from first to last, to bound the time for a server's trace."""
EXPLAINED = 2
"""If any stream works in more than one part in this many of the pause, that explains why the next work had to wait."""


def partly_recorded(trace: Trace, replays: Int64) -> list[int]:
    """Return the unexplained idle time after each of these replays, ns; 0 without one.

    Args:
        replays: rows of graph launches with work in the trace; at most LOOKED_AT of them are checked.
    """
    some = replays[np.linspace(0, len(replays) - 1, min(len(replays), LOOKED_AT)).astype(np.int64)]
    held = _Held(trace)
    return [
        held.behind(replay, work) for replay, work in zip(some.tolist(), trace.works_of(some).tolist(), strict=True)
    ]


class _Held:
    """Measures the time after replays in which nothing runs although work waits."""

    def __init__(self, trace: Trace) -> None:
        self._trace, self._work = trace, trace.kept(DeviceWork)
        s, syncs = trace.slices, trace.where(is_synchronize, *CALLS)
        self._syncs = syncs[np.argsort(s.ts[syncs], kind="stable")]
        self._synced_at = s.ts[self._syncs]

    def behind(self, replay: int, last: int) -> int:
        """Return the unexplained idle time after a replay whose last work is at row `last`, ns."""
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
        """Return the first synchronize that the replay's thread calls after it, or NONE."""
        s = self._trace.slices
        first = int(self._synced_at.searchsorted(s.end.item(replay)))
        rows = self._syncs[first : first + LOOKED_AT]
        own = rows[s.track[rows] == s.track.item(replay)]
        return int(own[0]) if len(own) else NONE

    def _idle(self, device: int, begin: int, end: int) -> int:
        """Return the length of this interval if it is long and the device is busy in little of it; else 0."""
        if end - begin <= HELD_NS:
            return 0
        busy = self._work.of(device).busy_within(begin, end)
        return end - begin if EXPLAINED * busy < end - begin else 0


__all__ = ["partly_recorded"]
