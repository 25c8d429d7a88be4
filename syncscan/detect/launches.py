"""From a trace's launches to the one that stands for all where every launch waits for its own kernel."""

from __future__ import annotations

import numpy as np

from syncscan.model.arrays import Bool, Int64
from syncscan.model.runtime_calls import is_graph_launch
from syncscan.model.trace import NONE, Category, Trace

_SHARE = 0.9
"""In 50 ordinary recordings up to 0.6 % of the launches outlast their kernel, with launch blocking all of 30.

(H200, torch 2.11, sample_traces, benchmarks/detect_thresholds.py.)
"""
_SOME = 5
"""One part in so many of the kernels nearly always shows that launches don't block."""
_ENOUGH = 20
"""Fewer kernels prove nothing: tiny ones can end within their own launch."""
_TOLERANCE_NS = 1_000
"""Traces from before torch 2.4 have whole µs, which are off by as much."""


def blocking_launch(trace: Trace) -> tuple[int, int] | None:
    """The longest launch of a trace in which launches block, and how many do; None for an ordinary trace.

    With `CUDA_LAUNCH_BLOCKING=1` each launch call returns after its kernel has ended; asynchronous launches return long
    before. So the sign is that at least 90 % of the kernels end before their launch does.
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
    """The launches of these kernels, but for graphs', and which of them returned after their kernel had ended."""
    slices, launch = trace.slices, trace.calls_of(kernel)
    single = (launch != NONE) & ~trace.called(launch, is_graph_launch)
    kernel, launch = kernel[single], launch[single]
    after_call = slices.ts[kernel] >= slices.ts[launch] - _TOLERANCE_NS
    return launch, after_call & (slices.end[kernel] <= slices.end[launch] + _TOLERANCE_NS)
