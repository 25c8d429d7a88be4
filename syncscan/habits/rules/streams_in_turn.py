"""Yield pairs of the program's streams with notable work, at least two stream waits per step, and no overlap."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from syncscan.habits.context import Context
from syncscan.model.arrays import Int64
from syncscan.model.duration import duration
from syncscan.model.finding import Confidence
from syncscan.model.habit import Habit
from syncscan.model.runtime_calls import is_stream_wait
from syncscan.model.slice_names import is_collective_kernel
from syncscan.model.trace import NONE, Category, Trace
from syncscan.rules.pages import advice_of

SHARE, OVERLAP = 0.1, 0.05
"""Least part of device time on each stream, and largest part of the smaller one's that may overlap."""


def find(context: Context) -> Iterable[Habit]:
    waits = context.rows(Category.RUNTIME, is_stream_wait, main=False)
    if len(waits) < 2 * context.count:
        return
    for device in context.work.devices:
        busy = {st: context.work.of(device, st) for st in _computing(context, device)}
        took = {st: float((w.busy_to - w.busy_from).sum()) for st, w in busy.items()}
        a_step = context.step.device_busy_us / max(1.0, sum(took.values()))
        large = [st for st in busy if took[st] >= SHARE * sum(took.values())]
        for k, a in enumerate(large):
            for b in large[k + 1 :]:
                intervals = zip(busy[a].busy_from.tolist(), busy[a].busy_to.tolist(), strict=True)
                shared = sum(busy[b].busy_within(*interval) for interval in intervals)
                least = min(took[a], took[b])
                alternate = shared <= OVERLAP * least and _in_turns(context, device, a, b)
                if alternate and not _librarys_own(context, device, a, b):
                    yield context.habit(
                        advice_of("streams-in-turn"),
                        waits,
                        least * a_step,
                        [
                            f"streams {a} and {b} work {duration(took[a] * a_step)} and "
                            f"{duration(took[b] * a_step)} per step and overlap for {shared / least:.1%} of that",
                            f"{len(waits) / context.count:.0f} waits between streams per step",
                        ],
                        confidence=Confidence.MEDIUM,
                    )


def _computing(context: Context, device: int) -> list[int]:
    """Return a device's streams without collectives, which end when the last rank does, whatever runs on this one."""
    s, trace = context.trace.slices, context.trace
    rows = trace.device_rows[s.device[trace.device_rows] == device]
    communicating = s.stream[rows[trace.called(rows, is_collective_kernel)]]
    return [st for st in context.work.streams(device) if st not in communicating]


def _librarys_own(context: Context, device: int, a: int, b: int) -> bool:
    """Return whether a library chose one of the streams, as cuDNN does in a recurrent layer.

    One op launches on both, or all work of a stream is from ops that launch on several streams.
    """
    s, trace = context.trace.slices, context.trace
    rows = trace.device_rows[s.device[trace.device_rows] == device]
    op, stream = _outermost_ops(trace, trace.calls_of(rows)), s.stream[rows]
    pairs = np.unique(np.stack([op, stream])[:, op != NONE], axis=1)
    ops, streams = np.unique(pairs[0], return_counts=True)
    several = np.isin(op, ops[streams > 1])
    first, second = (op[(stream == st) & (op != NONE)] for st in (a, b))
    return bool(np.isin(first, second).any()) or any(several[stream == st].all() for st in (a, b))


def _outermost_ops(trace: Trace, calls: Int64) -> Int64:
    """Return the row of the outermost library op around each call, or NONE; a custom function isn't a library op."""
    of_library = trace.is_category(Category.CPU_OP) & trace.named(lambda name: "::" in name)
    at = np.where(calls == NONE, NONE, trace.slices.parent[calls])
    outermost = np.full(len(calls), NONE, dtype=np.int64)
    while (known := at != NONE).any():
        outermost = np.where(known & of_library[at], at, outermost)
        at = np.where(known, trace.slices.parent[at], NONE)
    return outermost


def _in_turns(context: Context, device: int, a: int, b: int) -> bool:
    """Return whether each begins right after the other ends, repeatedly, so that a wait keeps them apart."""
    first, second = context.work.of(device, a), context.work.of(device, b)
    return (
        _follows(first.busy_to, second.busy_from) >= context.count
        and _follows(second.busy_to, first.busy_from) >= context.count
    )


def _follows(ends: Int64, begins: Int64) -> int:
    """Return how many of these begins lie within 30 µs after one of these ends."""
    at = np.searchsorted(ends, begins, side="right") - 1
    known = at >= 0
    return int(np.count_nonzero(begins[known] - ends[at[known]] < 30_000))
