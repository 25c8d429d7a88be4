"""Find when each device was idle, and why."""

from __future__ import annotations

import msgspec
import numpy as np

from syncscan.facts.device_work import DeviceWork, Work
from syncscan.model.analysis import Analysis
from syncscan.model.arrays import Int64
from syncscan.model.finding import Finding
from syncscan.model.interval import Cover, union
from syncscan.model.slice_names import is_loader
from syncscan.model.trace import Trace

SHORTEST = 2_000
"""Shortest idle time drawn, ns: a device takes about this long from one kernel to the next."""


class IdleTimes(msgspec.Struct, frozen=True, eq=False):
    """Idle times of a device, as columns of one length, ascending and disjoint."""

    begin: Int64
    end: Int64
    cause: Int64
    """Index into `causes`."""
    causes: tuple[Finding | str, ...]
    """A sync, `input`, or `host`: it launched late."""


def idle_times(analysis: Analysis, device: int) -> IdleTimes:
    """Return when this device was idle between its first and its last work, ns.

    The part of an idle time that is a sync's bubble (measured by `cost`) is caused by that sync. The rest is caused by
    input where the host was mostly in the DataLoader, else by late launches.
    """
    work = analysis.trace.cached(DeviceWork).of(device)
    gaps_from, gaps_to = work.busy.ends[:-1], work.busy.starts[1:]
    long = gaps_to - gaps_from >= SHORTEST
    starts, ends = gaps_from[long], gaps_to[long]
    behind, over, finding = _bubbles(analysis, device, work)
    drawn = Cover(starts, ends).holds(behind)
    behind, over, finding = behind[drawn], over[drawn], finding[drawn]
    begin = np.insert(over, behind.searchsorted(starts), starts)
    end = np.insert(behind, behind.searchsorted(ends), ends)
    begin, end = begin[begin < end], end[begin < end]
    causes: tuple[Finding | str, ...] = (*analysis.findings, "host", "input")
    for_input = 2 * _loading(analysis.trace).within(begin, end) > end - begin
    cause = np.append(finding, np.where(for_input, len(causes) - 1, len(causes) - 2))
    begin, end = np.append(behind, begin), np.append(over, end)
    order = np.argsort(begin, kind="stable")
    return IdleTimes(begin[order], end[order], cause[order], causes)


def _bubbles(analysis: Analysis, device: int, work: Work) -> tuple[Int64, Int64, Int64]:
    """Return begin, end and finding index of the bubbles on this device; ascending and disjoint."""
    bubbles = [
        (o.released, o.bubble_ns, place)
        for place, f in enumerate(analysis.findings)
        for o in f.occurrences
        if o.device == device and o.bubble_ns > 0
    ]
    released, length, place = np.array(bubbles, np.int64).reshape(-1, 3).T
    begin = work.idle_from(released)
    order = np.lexsort((place, length, begin))
    return begin[order], (begin + length)[order], place[order]


def _loading(trace: Trace) -> Cover:
    """Return when the steps' own threads were in the DataLoader's `__next__`."""
    s = trace.slices
    mask = trace.named(is_loader)
    if trace.steps:
        mask &= np.isin(s.track, [step.track for step in trace.steps])
    rows = np.flatnonzero(mask)
    rows = rows[np.argsort(s.ts[rows], kind="stable")]
    return Cover(*union(s.ts[rows], s.end[rows]))
