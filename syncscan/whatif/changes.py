"""Apply a change to the graph of a step: device work shortened, or moved ahead."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from syncscan.model.arrays import Bool
from syncscan.model.habit import Change
from syncscan.whatif.launches import Launches
from syncscan.whatif.overlap import ahead


def both(change: Change, other: Change) -> Change:
    """Return two changes as one; work that both shorten is as short as either leaves it."""
    work = dict(change.work)
    for row, stay in other.work:
        work[row] = min(stay, work.get(row, 1.0))
    host, first, calls = (*change.host, *other.host), (*change.ahead, *other.ahead), (*change.calls, *other.calls)
    # A step is compiled once: as the one above in the list has it.
    return Change(host, tuple(work.items()), first, calls, paced=change.paced or other.paced)


def moved(launches: Launches, change: Change) -> Launches:
    """Return the launches with those in the change's `ahead` intervals on streams of their own."""
    mask: Bool = np.zeros(len(launches), np.bool_)
    for track, begin, end in change.ahead:
        mask |= (launches.tracks == track) & (launches.issued >= begin) & (launches.issued < end)
    return ahead(launches, mask) if mask.any() else launches


def shortened(launches: Launches, change: Change) -> Launches:
    """Return the launches with the change's `work` shortened; removed work leaves no gap either."""
    gap, latency = launches.gap.copy(), launches.latency.copy()
    factor = np.ones(len(launches))
    if change.work:
        rows, stay = (np.array(c) for c in zip(*sorted(change.work), strict=True))
        at = np.minimum(np.searchsorted(rows, launches.rows), len(rows) - 1)
        factor = np.where(rows[at] == launches.rows, stay[at], 1.0)
        removed = factor == 0.0
        gap[removed], latency[removed] = 0.0, np.minimum(latency[removed], 0.0)
    length = ((launches.end - launches.start) * factor).astype(np.int64)
    return replace(launches, end=launches.start + length, gap=gap, latency=latency)
