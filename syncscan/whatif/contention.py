"""Measure how much slower kernels run beside a collective.

A collective's kernel occupies multiprocessors from its rank's arrival until the last rank has arrived and the data is
there, so computation takes longer meanwhile: on H200s, kernels took 1.4 times as long beside an all-reduce that waited
for another rank (DDP, torch 2.11). So a rank that arrives early at a collective pays twice.
"""

from __future__ import annotations

import msgspec
import numpy as np

from syncscan.facts.device_work import communicating
from syncscan.model.arrays import Float64, Int64, distinct, median, quantile
from syncscan.model.interval import union
from syncscan.model.trace import Category, Trace

BESIDE, ALONE = 0.95, 0.05
"""Least part of its time beside a collective for a kernel to count as beside it, and most part to count as alone."""
AROUND = 2
"""Number of neighboring kernels on either side that distinguish kinds. On sixteen recordings of two H200s, the slowdown
was 1.0 to 1.9 by the kernel's name alone, with one on either side 1.1 to 1.9, and with two or more 1.2 to 1.5 (1.8 with
so few that they don't matter)."""
ALIKE = 1.2
"""Largest ratio of the ninetieth to the tenth percentile of a kernel's lengths for one size. With it, a ResNet's
slowdown is 1.2 to 1.4 instead of 1.0 to 1.2; transformers' is unchanged."""
MOST = 2.0
"""Upper limit of contention: two kernels that share a device fairly take twice as long."""


def beside_collectives(trace: Trace, rows: Int64) -> Float64:
    """Return for each row of device work the part of its time in which a collective runs on its device."""
    s = trace.slices
    collective = trace.device_rows[communicating(trace)]
    part = np.zeros(len(rows))
    for device in distinct(s.device[collective]).tolist():
        there = collective[s.device[collective] == device]
        starts, ends = union(s.ts[there], s.end[there])
        own = np.flatnonzero(s.device[rows] == device)
        length = np.maximum(s.dur[rows[own]], 1)
        part[own] = (_covered_ns(starts, ends, s.end[rows[own]]) - _covered_ns(starts, ends, s.ts[rows[own]])) / length
    return part


def _covered_ns(starts: Int64, ends: Int64, at: Int64) -> Int64:
    """Return how much of the time before each of these is covered by disjoint ascending intervals."""
    before = np.concatenate([[0], np.cumsum(ends - starts)])
    k = np.searchsorted(starts, at)
    covered: Int64 = before[k] - np.where(k > 0, np.maximum(ends[np.maximum(k - 1, 0)] - at, 0), 0)
    return covered


class Slowdown(msgspec.Struct, frozen=True):
    """How many times as long kernels take beside a collective (1 if unknown), and the work that shows it, ns."""

    times: float = 1.0
    by_ns: float = 0.0


def slowdown(trace: Trace) -> Slowdown:
    """Return how much slower this trace's devices are beside a collective, by kernels that also run alone.

    Kernels of one name and different sizes are distinguished by those around them on their stream: in networks of equal
    layers, the same kernel of each layer is compared, beside a collective and alone. Where layers of different sizes
    have the same kernels in the same order, as in a ResNet, their lengths differ, and they don't count.
    """
    s, rows = trace.slices, trace.device_rows
    rows = rows[(s.category[rows] == Category.KERNEL) & ~communicating(trace)]
    if not len(rows):
        return Slowdown()
    rows = rows[np.lexsort((s.ts[rows], s.stream[rows], s.device[rows]))]
    part, kind = beside_collectives(trace, rows), _kinds(s.name[rows].astype(np.int64))
    beside, alone, length = part >= BESIDE, part <= ALONE, s.dur[rows]
    slow, fast = 0.0, 0.0
    for one in np.intersect1d(kind[beside], kind[alone]).tolist():
        slowed, usual = length[beside & (kind == one)], length[alone & (kind == one)]
        if len(usual) > 1 and _alike(usual) and _alike(slowed):
            slow += median(slowed) * len(slowed)
            fast += median(usual) * len(slowed)
    return Slowdown(min(max(slow / fast, 1.0), MOST), fast) if fast else Slowdown()


def _alike(lengths: Int64) -> bool:
    return quantile(lengths, 0.9) <= ALIKE * quantile(lengths, 0.1)


def _kinds(names: Int64) -> Int64:
    """Return a number for each kernel that is equal for kernels of one name between others of equal names."""
    padded = np.pad(names, AROUND, constant_values=-1)
    around = np.stack([padded[k : k + len(names)] for k in range(2 * AROUND + 1)])
    kinds: Int64 = np.unique(around, axis=1, return_inverse=True)[1].reshape(-1)
    return kinds
