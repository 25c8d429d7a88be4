"""From a trace to how much slower its kernels run beside a collective, and how long they would have taken without.

A collective's kernel occupies multiprocessors from when its rank comes until the last has come and the data are there,
so that what the device computes meanwhile takes longer: on H200s kernels took 1.4 times as long beside an all-reduce
that waited for another rank (DDP, torch 2.11). Who comes earlier to a collective than the others so pays twice.
"""

from __future__ import annotations

import numpy as np

from syncscan.model.arrays import Float64, Int64
from syncscan.model.interval import union
from syncscan.model.names import is_collective_kernel
from syncscan.model.trace import Category, Trace

BESIDE, ALONE = 0.95, 0.05
"""A kernel counts as run beside a collective, or alone, from this part of its time on, or below that."""
AROUND = 2
"""Kernels on either side that tell one kind from another. On sixteen recordings of two H200s the slowdown came out as
1.0 to 1.9 by the kernel's name alone, with one on either side 1.1 to 1.9, and with two or more as 1.2 to 1.5 (1.8 with
so few that they don't matter)."""
MOST = 2.0
"""More isn't contention: two kernels that share a device fairly take twice as long."""


def beside_collectives(trace: Trace, rows: Int64) -> Float64:
    """For each of these rows of device work the part of its time in which a collective runs on its device."""
    s = trace.slices
    collective = trace.device_rows[trace.named(is_collective_kernel)[trace.device_rows]]
    part = np.zeros(len(rows))
    for device in np.unique(s.device[collective]).tolist():
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


def slowdown(trace: Trace) -> float:
    """How many times as long kernels take beside a collective, by those that run both so and alone; 1 without any.

    Kernels of one name and other sizes are told apart by those around them on their stream: in networks of like layers
    the same of each layer are compared, of which some run beside a collective and some don't.
    """
    s, rows = trace.slices, trace.device_rows
    rows = rows[(s.category[rows] == Category.KERNEL) & ~trace.named(is_collective_kernel)[rows]]
    if not len(rows):
        return 1.0
    rows = rows[np.lexsort((s.ts[rows], s.stream[rows], s.device[rows]))]
    part, kind = beside_collectives(trace, rows), _kinds(s.name[rows].astype(np.int64))
    beside, alone = part >= BESIDE, part <= ALONE
    both = np.intersect1d(kind[beside], kind[alone])
    slow, fast = 0.0, 0.0
    for one in both.tolist():
        slowed = s.dur[rows[beside & (kind == one)]]
        slow += float(np.median(slowed)) * len(slowed)
        fast += float(np.median(s.dur[rows[alone & (kind == one)]])) * len(slowed)
    return min(max(slow / fast, 1.0), MOST) if fast else 1.0


def _kinds(names: Int64) -> Int64:
    """A number for each kernel that is the same for those of one name between others of the same names."""
    padded = np.pad(names, AROUND, constant_values=-1)
    around = np.stack([padded[k : k + len(names)] for k in range(2 * AROUND + 1)])
    kinds: Int64 = np.unique(around, axis=1, return_inverse=True)[1].reshape(-1)
    return kinds
