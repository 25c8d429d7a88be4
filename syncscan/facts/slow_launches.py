"""Find launches that took long: blocked by a full queue, which is waiting, or at the first use of what they launch."""

from __future__ import annotations

import numpy as np

from syncscan.facts.device_work import DeviceWork
from syncscan.facts.period import step_intervals
from syncscan.model.arrays import Int64, median
from syncscan.model.interval import cover_of
from syncscan.model.runtime_calls import frees, is_launch, is_memcpy
from syncscan.model.trace import CALLS, NONE, Trace, once

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


LONG_NS = 10_000_000
"""Least length of a launch, or of a `cudaFree` on an idle device, that is taken for first use if the profiler doesn't
say so: no other cause is known that takes the host this long in either."""
PART = 0.25
"""Largest share of the launches that are taken for first uses; if more are as long, something else is."""


@once
def long_first_launches(trace: Trace) -> Int64:
    """Return the rows of the few launches in the steps that take very long though nothing queued holds them."""
    s, rows = trace.slices, _in_steps(trace, trace.where(is_launch, *CALLS))
    long = rows[s.dur[rows] >= LONG_NS]
    if not len(long) or len(long) > PART * len(rows):
        return long[:0]
    first: Int64 = long[held_by_queue(trace, long, s.ts[long], s.end[long]) == 0]
    return first


@once
def library_setups(trace: Trace) -> Int64:
    """Return the rows of the long calls in the steps that free memory while the device does nothing.

    So libraries set themselves up, once: cuBLAS and cuDNN call `cudaFree` first of all.
    """
    s, rows = trace.slices, _in_steps(trace, trace.where(frees, *CALLS))
    work = trace.cached(DeviceWork)
    idle = [
        row
        for row in rows[s.dur[rows] >= LONG_NS].tolist()
        if not any(work.of(device).busy.between(s.ts.item(row), s.end.item(row)) for device in work.devices)
    ]
    return np.array(idle, np.int64)


def _in_steps(trace: Trace, rows: Int64) -> Int64:
    """Return those of these calls that begin in the steps, on the threads that launch their work."""
    s, launching = trace.slices, trace.device_calls
    tracks = s.track[launching[launching != NONE]]
    inside = cover_of(step_intervals(trace)).holds(s.ts[rows])
    chosen: Int64 = rows[inside & np.isin(s.track[rows], tracks)]
    return chosen
