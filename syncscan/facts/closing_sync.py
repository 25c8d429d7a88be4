"""From a trace to the synchronise in it that is the profiler's own."""

from __future__ import annotations

import numpy as np

from syncscan.facts.frames import frames_around
from syncscan.model.arrays import Int64
from syncscan.model.runtime_calls import is_device_synchronize, is_queue_finish
from syncscan.model.trace import CALLS, NONE, Category, Trace, once

_ADJACENT_NS = 20_000
"""From one queue's end to the next one's call, where torch waits for all queues of a device in a loop of C++."""


@once
def profiler_syncs(trace: Trace) -> Int64:
    """Rows of the calls that are the profiler's own closing synchronise, in time order; see `profiler_sync`.

    On an Intel device there is no such call: torch waits for all its queues in turn (c10/xpu/XPUStream.cpp,
    `syncStreamsOnDevice`).
    """
    row = profiler_sync(trace)
    return np.array([row], np.int64) if row != NONE else _queues(trace)


def _queues(trace: Trace) -> Int64:
    """The last run of calls that wait for a queue each, if it is the profiler's."""
    s, rows = trace.slices, trace.where(is_queue_finish, *CALLS)
    rows = rows[np.argsort(s.ts[rows], kind="stable")]
    if not len(rows) or _is_programs(trace, int(rows[-1])):
        return rows[:0]
    apart = (s.ts[rows[1:]] - s.end[rows[:-1]] > _ADJACENT_NS) | (s.parent[rows[1:]] != s.parent[rows[:-1]])
    first = int(np.flatnonzero(np.append(True, apart))[-1])
    return rows[first:]


def profiler_sync(trace: Trace) -> int:
    """The row of the profiler's own closing device synchronise, NONE without.

    `torch.autograd.profiler.profile.__exit__` synchronises the device before it stops collecting: a device synchronise
    outside every step and op, with no launch after it, and in a trace with stacks below the profiler's own frame
    (torch/autograd/profiler.py).
    """
    rows = trace.where(is_device_synchronize, *CALLS)
    if not len(rows):
        return NONE
    last = int(rows[np.argmax(trace.slices.ts[rows])])
    return NONE if _is_programs(trace, last) else last


def _is_programs(trace: Trace, row: int) -> bool:
    return _in_a_step(trace, row) or _in_an_op(trace, row) or _launches_follow(trace, row) or _called(trace, row)


def _in_a_step(trace: Trace, row: int) -> bool:
    return bool(trace.in_steps(trace.slices.ts[[row]]).any())


def _in_an_op(trace: Trace, row: int) -> bool:
    around = trace.slices.category[trace.ancestors(row)]
    return bool(np.isin(around, (Category.CPU_OP, Category.ANNOTATION)).any())


def _launches_follow(trace: Trace, row: int) -> bool:
    calls = trace.device_calls
    return bool((trace.slices.ts[calls[calls != NONE]] > trace.slices.ts[row]).any())


def _called(trace: Trace, row: int) -> bool:
    """Whether Python frames show that the program called it: there are some, and none of them is the profiler's."""
    s, rows = trace.slices, [row]
    (names,) = frames_around(trace, s.track[rows], s.ts[rows], s.end[rows])
    return any("synchronize" in name for name in names) and not any("profiler" in name for name in names)
