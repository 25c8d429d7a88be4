"""From the waits of sync points to how long any thread was held: time in which several wait counts once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from syncscan.model.arrays import distinct
from syncscan.model.finding import Occurrence
from syncscan.model.interval import union


def times_held(groups: Sequence[Sequence[Occurrence]]) -> list[int]:
    """For each group of sync points how long at least one thread was blocked by them, in ns.

    Threads of a server wait side by side: added up, their waits would be longer than the step that they are part of.
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
    for each in distinct(group[1:][at_once]).tolist():  # few: most waits are of one thread
        mine = slice(*np.searchsorted(group, [each, each + 1]).tolist())
        starts, stops = union(begins[mine], ends[mine])
        held[each] = (stops - starts).sum()
    times: list[int] = held.tolist()
    return times
