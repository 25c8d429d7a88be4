"""From launches to edges that no call explains: work that lay queued, and began just when another stream's work ended.

A stream that was told to wait for an event may get its next work much later, from another place of the program, so that
the call before that work says nothing; the device's times still do (FSDP2's stream for copies into an all-gather).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from syncscan.whatif.events import EventEdge, EventRecord, first_waiters
from syncscan.whatif.launches import Launches

LONG_NS = 50_000
"""A pause between queued work that is longer was no pause of the device's: those take some µs."""
AT_ONCE_NS = 20_000
"""Work begins so soon behind what it waited for (two H200s: 2 to 12 µs behind an all-gather)."""


def coincident_edges(launches: Launches, edges: Sequence[EventEdge]) -> list[EventEdge]:
    """An edge for each such launch whose begin another stream's end explains, the last to end before it.

    Args:
        launches: in the order of their calls, with the gaps that they were recorded with.
        edges: those that are known.
    """
    known = set(first_waiters(list(edges)).tolist())
    order = np.argsort(launches.end, kind="stable")
    ends = launches.end[order]
    found = []
    for at in np.flatnonzero(launches.gap > LONG_NS).tolist():
        if at in known:
            continue
        begin = int(launches.start[at])
        first, last = np.searchsorted(ends, [begin - AT_ONCE_NS, begin], side="right")
        for other in order[first:last][::-1].tolist():
            if launches.stream[other] != launches.stream[at] and other < at:
                record = EventRecord(int(launches.returned[other]), int(launches.stream[other]))
                found.append(EventEdge(int(launches.issued[at]), int(launches.stream[at]), record, at))
                break
    return found
