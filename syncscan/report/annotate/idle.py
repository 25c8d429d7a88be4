"""From an Analysis to the times its devices stood idle, each with its cause."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from syncscan.model.analysis import Analysis
from syncscan.model.arrays import Int64
from syncscan.model.device_work import DeviceWork
from syncscan.model.finding import Finding, Occurrence
from syncscan.model.interval import union
from syncscan.model.names import is_loader
from syncscan.model.trace import NONE, Trace

SHORTEST = 2_000
"""Idle times below this many ns aren't drawn: so long does a device take from one kernel to the next."""


@dataclass(frozen=True, slots=True)
class Idle:
    """One idle time of a device, ns: behind a sync (`finding` is set), for input, or because the host was late."""

    ts: int
    end: int
    cause: str
    """`sync`, `input` or `host`."""
    finding: Finding | None = None


def idle_times(analysis: Analysis, device: int) -> Iterator[Idle]:
    """When this device stood idle between its first and its last work, in order.

    What `cost` counted as the bubble behind a sync point is drawn at the first idle times behind it; the rest is input
    where the host was mostly in the DataLoader, and else the host that came late with its launches.
    """
    work = DeviceWork(analysis.trace).of(device)
    gaps_from, gaps_to = work.busy_to[:-1], work.busy_from[1:]
    long = gaps_to - gaps_from >= SHORTEST
    bubbles = _Bubbles(analysis)
    loading = _loading(analysis.trace)
    for start, end in zip(gaps_from[long].tolist(), gaps_to[long].tolist(), strict=True):
        for lo, hi, finding in bubbles.split(start, end, device):
            if finding:
                yield Idle(lo, hi, "sync", finding)
            else:
                yield Idle(lo, hi, "input" if 2 * _within(loading, lo, hi) > hi - lo else "host")


class _Bubbles:
    """The sync points in order of when their waits were over, each with the part of its bubble that isn't drawn yet."""

    def __init__(self, analysis: Analysis) -> None:
        pairs = [(o, f) for f in analysis.findings for o in f.occurrences]
        pairs.sort(key=lambda pair: pair[0].sync.released)
        self.pairs: list[tuple[Occurrence, Finding]] = pairs
        self.starts = np.array([o.sync.released for o, _ in pairs], dtype=np.int64)
        self.left = [o.cost.bubble_ns for o, _ in pairs]

    def split(self, start: int, end: int, device: int) -> Iterator[tuple[int, int, Finding | None]]:
        """The pieces of an idle time: between two of these times the first part belongs to the one before."""
        first, last = np.searchsorted(self.starts, [start, end], side="right").tolist()
        edges = [start, *self.starts[first:last].tolist(), end]
        for k, (lo, hi) in enumerate(itertools.pairwise(edges), first - 1):
            taken = self._take(k, hi - lo, device)
            if taken:
                yield lo, lo + taken, self.pairs[k][1]
            if lo + taken < hi:
                yield lo + taken, hi, None

    def _take(self, k: int, length: int, device: int) -> int:
        if k < 0 or self.pairs[k][0].sync.device not in (device, NONE):
            return 0
        taken = min(length, self.left[k])
        self.left[k] -= taken
        return taken


def _loading(trace: Trace) -> tuple[Int64, Int64]:
    """When the steps' own threads were in the DataLoader's `__next__`."""
    s = trace.slices
    mask = trace.named(is_loader)
    if trace.steps:
        mask &= np.isin(s.track, [step.track for step in trace.steps])
    rows = np.flatnonzero(mask)
    rows = rows[np.argsort(s.ts[rows], kind="stable")]
    return union(s.ts[rows], s.end[rows])


def _within(busy: tuple[Int64, Int64], start: int, end: int) -> int:
    lo, hi = np.searchsorted(busy[1], start), np.searchsorted(busy[0], end)
    overlap = np.minimum(busy[1][lo:hi], end) - np.maximum(busy[0][lo:hi], start)
    return int(overlap.sum())
