"""Measure how long a full launch queue blocked launches; that is waiting, not host work."""

from __future__ import annotations

import numpy as np

from syncscan.model.arrays import Int64, median
from syncscan.model.runtime_calls import is_memcpy
from syncscan.model.trace import Trace, once

QUEUE_FULL = 900
"""Launches in flight from which a long launch means a full queue rather than host work (the queue holds about
1,024)."""
LONG_LAUNCH_NS = 50_000
"""A launch longer than this was blocked; without a full queue it takes 2 to 10 µs, also under a profiler."""


def held_by_queue(trace: Trace, calls: Int64, issued: Int64, returned: Int64) -> Int64:
    """Return how long a full queue blocked each launch before it did its own work, ns; mostly 0.

    A full queue shows as a long launch with about a thousand others in flight. Work from before the recording counts
    too, though its launch isn't in the trace. A copy of pageable memory takes long itself: it returns once its bytes
    are staged.

    Args:
        calls: rows of the launches.
        issued, returned: begin and end of each launch, ns.
    """
    held = np.zeros(len(calls), np.int64)
    long = np.flatnonzero(returned - issued > LONG_LAUNCH_NS)
    if len(long):
        long = long[~trace.called(calls[long], is_memcpy)]
        long = long[_in_flight(trace, issued[long]) >= QUEUE_FULL]
    if len(long):
        usual = _usual_lengths(trace, calls[long])
        held[long] = np.maximum(returned[long] - usual - issued[long], 0)
    return held


def _usual_lengths(trace: Trace, calls: Int64) -> Int64:
    """Return for each call the median length of all calls of that name, ns."""
    _, first, which = np.unique(trace.slices.name[calls], return_index=True, return_inverse=True)
    usual = [int(median(trace.lengths_like(call))) for call in calls[first].tolist()]
    return np.array(usual, np.int64)[which.reshape(-1)]


def _in_flight(trace: Trace, times: Int64) -> Int64:
    """Return how much device work was launched but hadn't begun at each of these times."""
    start, known = _starts(trace)
    to_begin = len(start) - np.searchsorted(start, times, side="right")
    to_launch = len(known) - np.searchsorted(known, times, side="right")
    return to_begin - to_launch


@once
def _starts(trace: Trace) -> tuple[Int64, Int64]:
    """Return when device work began, and when work that began after its launch was launched; both ascending, ns."""
    start, (launched, order) = trace.slices.ts.take(trace.device_rows), trace.by_launch
    return start, launched[launched < start.take(order)]
