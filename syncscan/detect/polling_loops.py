"""Find loops of event and stream queries in which a program waits for its device.

`while not event.query(): ...` never blocks in a call, but still blocks the host. A single query isn't a wait:
torch's allocator queries each stored event, within an op, and NCCL's watchdog queries on a thread of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from syncscan.detect.awaited import AwaitedWork
from syncscan.detect.blocking_call import BlockingCall
from syncscan.model.arrays import Int64, distinct
from syncscan.model.finding import Awaited
from syncscan.model.runtime_calls import api_name, is_event_query, is_query
from syncscan.model.trace import CALLS, NONE, Category, Trace

FEWEST = 3
"""Fewest queries in a loop: a program that queries twice, and does something else meanwhile, doesn't wait."""
SHORTEST_NS = 100_000
"""Shortest loop: the allocator's bursts, the longest series of queries without a wait, take a few µs."""


def polls(trace: Trace, awaited: AwaitedWork) -> Iterator[BlockingCall]:
    """Yield one wait for each loop of queries in which a launching thread waited for its device."""
    slices, launching = trace.slices, _launching(trace)
    for loop in _loops(trace):
        rows: list[int] = loop.tolist()
        first, last, name = rows[0], rows[-1], trace.name(rows[0])
        track = slices.track.item(first)
        if track not in launching or slices.end.item(last) - slices.ts.item(first) < SHORTEST_NS:
            continue
        work = awaited.of_poll(rows, track, is_event_query(name))
        if work is not None:
            yield _call(trace, rows, api_name(name), work)


def _loops(trace: Trace) -> Iterator[Int64]:
    """Yield the rows of each loop: consecutive queries in no op with nothing in between."""
    rows = trace.where(is_query, *CALLS)
    if len(rows) < FEWEST:
        return
    slices, around = trace.slices, trace.slices.parent[rows]
    rows = rows[(around == NONE) | (slices.category[around] != Category.CPU_OP)]
    alike = np.diff(rows) == 1  # anything else on the thread has a row in between
    for column in (slices.track, slices.parent, slices.name):
        alike &= column[rows[1:]] == column[rows[:-1]]
    for loop in np.split(rows, np.flatnonzero(~alike) + 1):
        if len(loop) >= FEWEST:
            yield loop


def _launching(trace: Trace) -> set[int]:
    """Return the tracks that launch device work."""
    calls = trace.device_calls
    return set(distinct(trace.slices.track[calls[calls != NONE]]).tolist())


def _call(trace: Trace, rows: list[int], api: str, awaited: Awaited) -> BlockingCall:
    """Return a loop as one call that blocks from its first query to its last."""
    slices, (device, stream) = trace.slices, awaited.streams[0]
    return BlockingCall(
        rows=tuple(rows),
        api=api,
        apis=(api,),
        ts=slices.ts.item(rows[0]),
        end=slices.end.item(rows[-1]),
        track=slices.track.item(rows[0]),
        around=slices.parent.item(rows[0]),
        device=device,
        stream=stream,
        waited=True,
        awaited=awaited,
    )
