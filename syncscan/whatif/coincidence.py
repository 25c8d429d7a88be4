"""Find edges that no call explains: queued work that began just when another stream's work ended.

A stream that waits for an event may get its next work much later, from another place in the program, so that the call
before that work shows nothing. The device's times still do (FSDP2's stream for copies into an all-gather).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from syncscan.whatif.events import EventEdge, EventRecord, first_waiters
from syncscan.whatif.launches import Launches

LONG_NS = 50_000
"""A longer pause between queued work isn't the device's own, which takes a few µs."""
AT_ONCE_NS = 20_000
"""Delay with which work begins after what it waited for (two H200s: 2 to 12 µs after an all-gather)."""


def coincident_edges(launches: Launches, edges: Sequence[EventEdge]) -> list[EventEdge]:
    """Return an edge for each launch whose begin another stream's end explains, the last to end before it.

    Args:
        launches: launches in the order of their calls, with recorded gaps.
        edges: the known edges.
    """
    waiters = set(first_waiters(list(edges)).tolist())
    order = np.argsort(launches.end, kind="stable")
    ends = launches.end[order]
    inferred = []
    for at in np.flatnonzero(launches.gap > LONG_NS).tolist():
        if at in waiters:
            continue
        begin = int(launches.start[at])
        first, last = np.searchsorted(ends, [begin - AT_ONCE_NS, begin], side="right")
        for other in order[first:last][::-1].tolist():
            if launches.stream[other] != launches.stream[at] and other < at:
                record = EventRecord(int(launches.returned[other]), int(launches.stream[other]))
                inferred.append(EventEdge(int(launches.issued[at]), int(launches.stream[at]), record, at))
                break
    return inferred
