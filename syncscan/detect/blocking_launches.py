"""Find the launch that represents all if every launch waits for its own kernel."""

from __future__ import annotations

import numpy as np

from syncscan.model.arrays import Bool, Int64
from syncscan.model.runtime_calls import is_graph_launch
from syncscan.model.trace import NONE, Category, Trace

_SHARE = 0.9
"""Least share of launches that outlast their kernel with launch blocking.

In 50 ordinary recordings it is at most 0.6 %, with launch blocking 100 % in all 30.

(H200, torch 2.11, sample_traces, benchmarks/detect_thresholds.py.)
"""
_SOME = 5
"""Part of the kernels, one in this many, that nearly always suffices to show that launches don't block."""
_ENOUGH = 20
"""Fewer kernels prove nothing, as tiny ones can end within their own launch."""
_TOLERANCE_NS = 1_000
"""Accuracy of traces from before torch 2.4, which have whole µs."""


def blocking_launch(trace: Trace) -> tuple[int, int] | None:
    """Return the longest launch of a trace with blocking launches, and their number; None for an ordinary trace.

    With `CUDA_LAUNCH_BLOCKING=1`, each launch call returns after its kernel has ended; asynchronous launches return
    long before. So at least 90 % of the kernels must end before their launch does.
    """
    kernels, _ = trace.rows_of(Category.KERNEL)
    _, blocked = _launches(trace, kernels[: len(kernels) // _SOME])
    if len(kernels) and (len(kernels) - np.count_nonzero(~blocked)) / len(kernels) < _SHARE:  # whatever the others do
        return None
    launch, blocked = _launches(trace, kernels)
    if len(launch) < _ENOUGH or blocked.mean() < _SHARE:
        return None
    waiting = launch[blocked]
    return int(waiting[np.argmax(trace.slices.dur[waiting])]), int(blocked.sum())


def _launches(trace: Trace, kernel: Int64) -> tuple[Int64, Bool]:
    """Return the launches of these kernels, without graph launches, and which of them returned after their kernel."""
    slices, launch = trace.slices, trace.calls_of(kernel)
    single = (launch != NONE) & ~trace.called(launch, is_graph_launch)
    kernel, launch = kernel[single], launch[single]
    after_call = slices.ts[kernel] >= slices.ts[launch] - _TOLERANCE_NS
    return launch, after_call & (slices.end[kernel] <= slices.end[launch] + _TOLERANCE_NS)
