"""From a trace to how much slower its kernels run beside a collective, and how long they would have taken without.

A collective's kernel occupies multiprocessors from when its rank comes until the last has come and the data are there,
so that what the device computes meanwhile takes longer: on H200s kernels took 1.4 times as long beside an all-reduce
that waited for another rank (DDP, torch 2.11). Who comes earlier to a collective than the others so pays twice.
"""

from __future__ import annotations

import msgspec
import numpy as np

from syncscan.facts.device_work import communicating
from syncscan.model.arrays import Float64, Int64, distinct, median, quantile
from syncscan.model.interval import union
from syncscan.model.trace import Category, Trace

BESIDE, ALONE = 0.95, 0.05
"""A kernel counts as run beside a collective, or alone, from this part of its time on, or below that."""
AROUND = 2
"""Kernels on either side that tell one kind from another. On sixteen recordings of two H200s the slowdown came out as
1.0 to 1.9 by the kernel's name alone, with one on either side 1.1 to 1.9, and with two or more as 1.2 to 1.5 (1.8 with
so few that they don't matter)."""
ALIKE = 1.2
"""Lengths of one kernel that differ by more, from their tenth to their ninetieth percentile, are of several sizes. So a
ResNet's slowdown comes out as 1.2 to 1.4 instead of 1.0 to 1.2; transformers' stays the same."""
MOST = 2.0
"""More isn't contention: two kernels that share a device fairly take twice as long."""


def beside_collectives(trace: Trace, rows: Int64) -> Float64:
    """For each of these rows of device work the part of its time in which a collective runs on its device."""
    s = trace.slices
    collective = trace.device_rows[communicating(trace)]
    part = np.zeros(len(rows))
    for device in distinct(s.device[collective]).tolist():
        there = collective[s.device[collective] == device]
        starts, ends = union(s.ts[there], s.end[there])
        mine = np.flatnonzero(s.device[rows] == device)
        length = np.maximum(s.dur[rows[mine]], 1)
        part[mine] = (_covered(starts, ends, s.end[rows[mine]]) - _covered(starts, ends, s.ts[rows[mine]])) / length
    return part


def _covered(starts: Int64, ends: Int64, at: Int64) -> Int64:
    """How much of the time before each of these is covered by disjoint ascending intervals."""
    before = np.concatenate([[0], np.cumsum(ends - starts)])
    k = np.searchsorted(starts, at)
    covered: Int64 = before[k] - np.where(k > 0, np.maximum(ends[np.maximum(k - 1, 0)] - at, 0), 0)
    return covered


class Slowdown(msgspec.Struct, frozen=True):
    """How many times as long kernels take beside a collective, 1 where nothing tells it, and by how much work, ns."""

    times: float = 1.0
    by_ns: float = 0.0


def slowdown(trace: Trace) -> Slowdown:
    """How much slower this trace's devices are beside a collective, by the kernels that run both so and alone.

    Kernels of one name and other sizes are told apart by those around them on their stream: in networks of like layers
    the same of each layer are compared, of which some run beside a collective and some don't. Where layers of other
    sizes have the same kernels in the same order, as in a ResNet, their lengths give them away, and they don't count.
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
    """A number for each kernel that is the same for those of one name between others of the same names."""
    padded = np.pad(names, AROUND, constant_values=-1)
    around = np.stack([padded[k : k + len(names)] for k in range(2 * AROUND + 1)])
    kinds: Int64 = np.unique(around, axis=1, return_inverse=True)[1].reshape(-1)
    return kinds
