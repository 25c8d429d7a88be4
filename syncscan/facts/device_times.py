"""Measure how devices spend the steps: computing, or in collectives that no computation overlaps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from syncscan.facts.device_work import communicating
from syncscan.model.arrays import Int64, distinct
from syncscan.model.interval import cover_of, union
from syncscan.model.runtime_calls import is_launch
from syncscan.model.slice_names import is_host_collective
from syncscan.model.step import DeviceTime
from syncscan.model.trace import HOST, Category, Trace, once


def device_times(trace: Trace, steps: Sequence[tuple[int, int]]) -> tuple[DeviceTime, ...]:
    """Return how each device spends a step, in mean µs; the busiest device first.

    A backend that communicates on the host (gloo, MPI, UCC) leaves no device work. Its collectives count as
    communication while the device is idle and the host launches nothing.
    """
    inside = trace.launched_in(steps)
    rows, computing = trace.device_rows[inside], ~communicating(trace)[inside]
    devices, on_host = trace.slices.device[rows], _on_host(trace, steps)
    times = []
    for device in distinct(devices).tolist():
        own = devices == device
        starts, ends = _busy(trace, rows[own])
        busy = _length(starts, ends) if computing.all() else _length(*_busy(trace, rows[own & computing]))
        exposed = _length(starts, ends) - busy + _idle_within(trace, on_host, starts, ends)
        times.append(DeviceTime(int(device), busy / len(steps) / 1e3, exposed / len(steps) / 1e3))
    return tuple(sorted(times, key=lambda d: (-d.busy_us - d.communication_us, d.device)))


def in_pageable_copies(trace: Trace, steps: Sequence[tuple[int, int]], device: int) -> float:
    """Return the time per step that a device spends in pageable copies of unrecorded size, in mean µs."""
    rows = trace.where(lambda name: "Pageable" in name, Category.MEMCPY)
    if not len(rows):
        return 0.0
    s, inside = trace.slices, np.zeros(len(trace.slices), np.bool_)
    inside[trace.device_rows[trace.launched_in(steps)]] = True
    copies = rows[inside[rows] & (s.device[rows] == device) & (s.bytes[rows] <= 0)]
    return float(s.dur[copies].sum()) / len(steps) / 1e3


def _on_host(trace: Trace, steps: Sequence[tuple[int, int]]) -> tuple[Int64, Int64]:
    """Return when a host-side backend communicated in these steps, as disjoint ascending intervals."""
    s = trace.slices
    rows = trace.where(is_host_collective, *HOST)
    if len(rows):
        rows = rows[cover_of(steps).holds(s.ts[rows])]
    return _busy(trace, rows[np.argsort(s.ts[rows], kind="stable")])


@once
def _launches(trace: Trace) -> Int64:
    return np.sort(trace.slices.ts[trace.named(is_launch)])


def _idle_within(trace: Trace, within: tuple[Int64, Int64], starts: Int64, ends: Int64) -> float:
    """Return the idle time within these intervals, in ns, without pauses in which something is launched."""
    total = 0
    for begin, end in zip(*within, strict=True):
        launches = _launches(trace)
        first, last = np.searchsorted(ends, begin, side="right"), np.searchsorted(starts, end)
        froms = np.concatenate([[begin], ends[first:last]])
        tos = np.concatenate([starts[first:last], [end]])
        quiet = np.searchsorted(launches, froms) == np.searchsorted(launches, tos)
        total += int(np.maximum(tos - froms, 0)[quiet].sum())
    return float(total)


def _busy(trace: Trace, rows: Int64) -> tuple[Int64, Int64]:
    """Return the union of these slices, which are ordered by start."""
    return union(trace.slices.ts[rows], trace.slices.end[rows])


def _length(starts: Int64, ends: Int64) -> float:
    return float((ends - starts).sum())
