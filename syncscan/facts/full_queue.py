"""From launches to how long each was held by a full launch queue, which is waiting and not the host's own work."""

from __future__ import annotations

import numpy as np

from syncscan.model.arrays import Int64, median
from syncscan.model.runtime_calls import is_memcpy
from syncscan.model.trace import Trace, once

QUEUE_FULL = 900
"""Launches in flight from which a long launch is a full queue, not the host's own time (about 1,024 fit in)."""
LONG_LAUNCH_NS = 50_000
"""A launch that returns later than this was held: without a full queue it takes 2 to 10 µs, under a profiler too."""


def held_by_queue(trace: Trace, calls: Int64, issued: Int64, returned: Int64) -> Int64:
    """How long each of these launches was held by a full queue before it could begin its own work, ns; mostly 0.

    A full queue shows as a launch that lasts with about a thousand others in flight. Work from before the recording
    counts too: it has no launch in the trace. A copy of pageable memory is long by itself: it returns when its bytes
    are staged.

    Args:
        trace: any trace.
        calls: rows of the launches.
        issued, returned: when each began and ended, ns.
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
    """For each of these calls the median length of all of its name, ns."""
    _, first, which = np.unique(trace.slices.name[calls], return_index=True, return_inverse=True)
    usual = [int(median(trace.lengths_like(call))) for call in calls[first].tolist()]
    return np.array(usual, np.int64)[which.reshape(-1)]


def _in_flight(trace: Trace, times: Int64) -> Int64:
    """How much device work was launched but not begun at these times, ns."""
    start, known = _starts(trace)
    to_begin = len(start) - np.searchsorted(start, times, side="right")
    to_launch = len(known) - np.searchsorted(known, times, side="right")
    return to_begin - to_launch


@once
def _starts(trace: Trace) -> tuple[Int64, Int64]:
    """When all device work began, ascending, and when what began behind its launch was launched, ascending; ns."""
    start, (launched, order) = trace.slices.ts.take(trace.device_rows), trace.by_launch
    return start, launched[launched < start.take(order)]
