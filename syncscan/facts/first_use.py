"""Find the very long calls that are made once: launches that load code, and a library that is set up."""

from __future__ import annotations

import numpy as np

from syncscan.facts.device_work import DeviceWork
from syncscan.facts.full_queue import held_by_queue
from syncscan.facts.period import step_intervals
from syncscan.model.arrays import Int64
from syncscan.model.interval import cover_of
from syncscan.model.runtime_calls import frees, is_launch
from syncscan.model.trace import CALLS, NONE, Trace, once

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
    work = trace.kept(DeviceWork)
    idle = [
        row
        for row in rows[s.dur[rows] >= LONG_NS].tolist()
        if not any(work.of(device).busy_within(s.ts.item(row), s.end.item(row)) for device in work.devices)
    ]
    return np.array(idle, np.int64)


def _in_steps(trace: Trace, rows: Int64) -> Int64:
    """Return those of these calls that begin in the steps, on the threads that launch their work."""
    s, launching = trace.slices, trace.device_calls
    tracks = s.track[launching[launching != NONE]]
    inside = cover_of(step_intervals(trace)).holds(s.ts[rows])
    chosen: Int64 = rows[inside & np.isin(s.track[rows], tracks)]
    return chosen
