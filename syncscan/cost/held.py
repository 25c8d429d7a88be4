"""Sum up how long threads were blocked by sync points; time in which several threads wait counts once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from syncscan.model.arrays import distinct
from syncscan.model.finding import Occurrence
from syncscan.model.interval import union


def times_held(groups: Sequence[Sequence[Occurrence]]) -> list[int]:
    """Return for each group of sync points how long they blocked at least one thread, in ns.

    Threads of a server wait side by side: the sum of their waits could be longer than the step.
    """
    group = np.repeat(np.arange(len(groups)), list(map(len, groups)))
    points = list(chain.from_iterable(groups))
    begins = np.array([o.sync.ts for o in points], np.int64)
    waits = np.maximum(np.array([o.cost.wait_ns for o in points], np.int64), 0)
    held = np.zeros(len(groups), np.int64)
    np.add.at(held, group, waits)
    order = np.lexsort((begins, group))
    group, begins, ends = group[order], begins[order], (begins + waits)[order]
    at_once = (group[1:] == group[:-1]) & (begins[1:] < ends[:-1])
    for number in distinct(group[1:][at_once]).tolist():  # few: most waits are of one thread
        own = slice(*np.searchsorted(group, [number, number + 1]).tolist())
        starts, stops = union(begins[own], ends[own])
        held[number] = (stops - starts).sum()
    times: list[int] = held.tolist()
    return times
