"""Yield the habit for many short kernels in a step that is certainly launch-bound, as far as graphs hold them.

Its changes take all of their host time out, which is the most that any way to launch them saves; `whatif.joint` has
what a compile leaves of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec.structs import replace

from syncscan.facts.device_work import share_in_all_steps
from syncscan.habits.context import LEAST_NS, Context
from syncscan.habits.rules.graph_breaks import (
    LEAST_LAUNCHES,
    Capturable,
    GraphBreaks,
    capturable,
    splits,
)
from syncscan.habits.rules.optimizers import gradients_zeroed, optimizer_loop, parameter_loops
from syncscan.model.arrays import Bool, Int64
from syncscan.model.duration import duration
from syncscan.model.habit import Change, Habit
from syncscan.model.interval import ThreadInterval
from syncscan.model.trace import Category


def said_elsewhere(context: Context) -> list[ThreadInterval]:
    """Return where an optimizer or another loop visits the parameters, and where gradients are zero-filled."""
    changes = [habit.changes[1] for find in (optimizer_loop, parameter_loops) for habit in context.cached(find)]
    changes += [habit.changes[-1] for habit in context.cached(gradients_zeroed)]
    return sorted((interval for change in changes for interval in change.host), key=lambda interval: interval.begin)


def begun_in(context: Context, rows: Int64, intervals: Sequence[ThreadInterval]) -> Bool:
    """Return which of these host slices begin in one of these intervals of their thread."""
    s, inside = context.trace.slices, np.zeros(len(rows), np.bool_)
    for track, begin, end in intervals:
        inside |= (s.track[rows] == track) & (s.ts[rows] >= begin) & (s.ts[rows] < end)
    return inside


PARTLY = (
    'torch.compile(model, mode="reduce-overhead") launches the model\'s kernels at once. A wait inside the model ends '
    "each graph: remove it first. Host work between calls of the model remains."
)
"""The fix if one graph can't hold the whole step."""
SMALL_NS = 50_000
"""Longest mean kernel whose launch can delay it."""
WHOLE = 0.95
"""Least part of a step's launches that one graph must hold to hold the step."""
WORTH_NS = 1_200_000
"""Shortest part worth compiling: a small network under a trainer got slower (6.9 → 7.5 ms, H200)."""
FUSED = 1 / 2
"""Least part of device time, with gaps, that a compile leaves: a denoiser with 3.5 ms of kernels and 14.5 ms per step
took 2.7 (H200, torch 2.11, 2026-11-22: `denoising` of `benchmarks/launches.py`)."""
STEADY = 0.9
"""Least part of a step's launches that all steps have; with less, shapes or control flow change, and no graph holds
them (1.0 in 56 recordings of programs that don't change)."""


def find(context: Context) -> Iterable[Habit]:
    if not context.launch_bound or context.launch_count < LEAST_LAUNCHES or share_in_all_steps(context.trace) < STEADY:
        return
    elsewhere = said_elsewhere(context)
    calls, breaks = context.launch_calls, GraphBreaks.of(context)
    launches: Int64 = calls[~begun_in(context, calls, elsewhere)]
    parts = capturable(context, launches, breaks)
    in_one_graph = len(parts) <= context.count and sum(len(p.calls) for p in parts) >= WHOLE * len(launches)
    parts = [part for part in parts if in_one_graph or part.length_ns * context.host_scale >= WORTH_NS]
    kernels = _kernels(context, _calls(parts))
    if not len(kernels):
        return
    mean_ns = float(context.trace.slices.dur[kernels].mean())
    took = _took(context, parts, elsewhere)
    saved = min(took, context.period_us) - context.length_us(kernels.tolist())
    if mean_ns > SMALL_NS or saved < 5 * context.notable_us:
        return
    host = tuple(interval for part in parts for interval in part.host)
    habit = context.habit(
        "launch-bound",
        [],
        took,
        _evidence(context, parts, took, mean_ns, in_one_graph),
        [Change(host=host), Change(host=host, work=tuple((row, FUSED) for row in kernels.tolist()))],
    )
    yield replace(habit, splits=splits(context, breaks), fix=habit.fix if in_one_graph else PARTLY)


def _evidence(
    context: Context, parts: Sequence[Capturable], took: float, mean_ns: float, in_one_graph: bool
) -> list[str]:
    count = len(_calls(parts)) / context.count
    return [
        f"{count:.0f} launches per step of kernels of {duration(mean_ns / 1e3)} on average take "
        f"{'' if context.step.unprofiled_us else 'at least '}{duration(took)} of the host",
        _compare(context),
        *([] if in_one_graph else [_in_the_way(context, count, len(parts) / context.count)]),
    ]


def _calls(parts: Sequence[Capturable]) -> Int64:
    return np.concatenate([np.zeros(0, np.int64), *(part.calls for part in parts)])


def _took(context: Context, parts: Sequence[Capturable], elsewhere: Sequence[ThreadInterval]) -> float:
    """Return the host time of these launches in µs per step; a lower bound without an unprofiled step time."""
    if context.step.unprofiled_us is None:
        return sum(len(part.calls) for part in parts) * LEAST_NS / context.count / 1e3
    within = sum(other.end - other.begin for other in elsewhere if any(_holds(part, other) for part in parts))
    return (sum(part.length_ns for part in parts) - within) / context.count / 1e3 * context.host_scale


def _holds(part: Capturable, other: ThreadInterval) -> bool:
    return min(i.begin for i in part.host) <= other.begin and other.end <= max(i.end for i in part.host)


def _kernels(context: Context, calls: Int64) -> Int64:
    trace = context.trace
    rows = trace.device_rows[trace.slices.category[trace.device_rows] == int(Category.KERNEL)]
    own: Int64 = rows[np.isin(trace.calls_of(rows), calls)]
    return own


def _in_the_way(context: Context, count: float, parts: float) -> str:
    syncs = sum(f.per_step for f in context.findings)
    return (
        f"one graph can't hold the step's {context.launch_count:.0f} launches: {syncs:.0f} syncs and other work of the "
        f"host are between them; {count:.0f} are in {parts:.0f} parts that are each worth a graph"
    )


def _compare(context: Context) -> str:
    busy = f"the device is busy {duration(context.step.device_busy_us)} of it"
    if context.step.unprofiled_us:
        return f"without the profiler the step takes {duration(context.period_us)}, and {busy}"
    return f"the recorded step takes {duration(context.period_us)}, and {busy}"
