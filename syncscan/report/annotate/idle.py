"""From an Analysis to the times its devices stood idle, each with its cause."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from syncscan.model.analysis import Analysis
from syncscan.model.device_work import DeviceWork, Work
from syncscan.model.finding import Finding
from syncscan.model.interval import Cover, union
from syncscan.model.names import is_loader
from syncscan.model.trace import Trace

SHORTEST = 2_000
"""Idle times below this many ns aren't drawn: so long does a device take from one kernel to the next."""


class Idle(msgspec.Struct, frozen=True):
    """One idle time of a device, ns: behind a sync (`finding` is set), for input, or because the host was late."""

    ts: int
    end: int
    cause: str
    """`sync`, `input` or `host`."""
    finding: Finding | None = None


def idle_times(analysis: Analysis, device: int) -> Iterator[Idle]:
    """When this device stood idle between its first and its last work, in order.

    An idle time is behind a sync for as long as its bubble, which `cost` counted; the rest is input where the host was
    mostly in the DataLoader, and else the host that came late with its launches.
    """
    work = analysis.trace.kept(DeviceWork).of(device)
    gaps_from, gaps_to = work.busy_to[:-1], work.busy_from[1:]
    long = gaps_to - gaps_from >= SHORTEST
    bubbles = _bubbles(analysis, device, work)
    begins = np.array([begin for begin, _, _ in bubbles], np.int64)
    starts, ends = gaps_from[long], gaps_to[long]
    within = zip(begins.searchsorted(starts).tolist(), begins.searchsorted(ends).tolist(), strict=True)
    pieces = [
        piece
        for start, end, (first, last) in zip(starts.tolist(), ends.tolist(), within, strict=True)
        for piece in _split(start, end, bubbles[first:last])
    ]
    begin, end = np.array([piece[:2] for piece in pieces], np.int64).reshape(-1, 2).T
    for_input = 2 * _loading(analysis.trace).within(begin, end) > end - begin
    for (lo, hi, finding), loading in zip(pieces, for_input.tolist(), strict=True):
        yield Idle(lo, hi, "sync" if finding else "input" if loading else "host", finding)


def _bubbles(analysis: Analysis, device: int, work: Work) -> list[tuple[int, int, Finding]]:
    """The bubbles on this device, with begin, end and finding, in order; they never overlap."""
    found = [
        (begin, begin + o.cost.bubble_ns, f)
        for f in analysis.findings
        for o in f.occurrences
        if o.sync.device == device and o.cost.bubble_ns > 0
        for begin in [work.idle_from(o.sync.released)]
    ]
    return sorted(found, key=lambda bubble: bubble[0])


def _split(start: int, end: int, bubbles: list[tuple[int, int, Finding]]) -> Iterator[tuple[int, int, Finding | None]]:
    """The pieces of an idle time: the bubbles in it, and what lies beside them."""
    for begin, over, finding in bubbles:
        if start < begin:
            yield start, begin, None
        yield begin, over, finding
        start = over
    if start < end:
        yield start, end, None


def _loading(trace: Trace) -> Cover:
    """When the steps' own threads were in the DataLoader's `__next__`."""
    s = trace.slices
    mask = trace.named(is_loader)
    if trace.steps:
        mask &= np.isin(s.track, [step.track for step in trace.steps])
    rows = np.flatnonzero(mask)
    rows = rows[np.argsort(s.ts[rows], kind="stable")]
    return Cover(*union(s.ts[rows], s.end[rows]))
