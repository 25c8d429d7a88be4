"""From a trace to the one synchronise in it that is the profiler's own."""

from __future__ import annotations

import numpy as np

from syncscan.facts.frames import frames_around
from syncscan.model.runtime_calls import is_device_synchronise
from syncscan.model.trace import CALLS, NONE, Category, Trace


def profiler_sync(trace: Trace) -> int:
    """The row of the profiler's own closing device synchronise, NONE without.

    `torch.autograd.profiler.profile.__exit__` synchronises the device before it stops collecting: a device synchronise
    outside every step and op, with no launch after it, and in a trace with stacks below the profiler's own frame
    (torch/autograd/profiler.py).
    """
    rows = trace.where(is_device_synchronise, *CALLS)
    if not len(rows):
        return NONE
    last = int(rows[np.argmax(trace.slices.ts[rows])])
    ours = _in_a_step(trace, last) or _in_an_op(trace, last) or _launches_follow(trace, last) or _called(trace, last)
    return NONE if ours else last


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
