"""From a call that waits for an event to the records that it may mean, and from a record to the streams it may mark.

Where the trace states which record is meant, that is in `stated_edges`. Else it is one of the last before the wait, on
a stream on which its thread had launched work.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from syncscan.facts.stated_edges import stated_edges
from syncscan.model.arrays import Int32, Int64, grouped
from syncscan.model.runtime_calls import is_event_record, is_event_synchronize, is_stream_wait
from syncscan.model.trace import CALLS, NONE, Trace

TRIES = 8
"""Records of the waiting thread that are tried as the one meant, the nearest first: programs hand over with one or two,
and FSDP's rate limiter keeps two all-gathers in flight."""
LOOK_BACK = 256
"""Records of other threads, and launches before a record, that are looked through: time must not grow with both."""

_NO_TIMES = np.zeros(0, np.int64)


class EventRecords:
    """The event record calls of a trace, in time order."""

    def __init__(self, trace: Trace) -> None:
        self._slices = trace.slices
        rows = trace.where(is_event_record, *CALLS)
        rows = rows[np.argsort(trace.slices.ts[rows], kind="stable")]
        self._on = {NONE: (rows, trace.slices.ts[rows])}
        """Of each thread, and of all: rows of its records, and when they began."""
        waits = trace.where(lambda name: is_event_synchronize(name) or is_stream_wait(name), *CALLS)
        waits = waits[np.argsort(trace.slices.ts[waits], kind="stable")]
        self.stated = stated_edges(trace, rows, waits)
        """Row of a call that waits for an event → row of the record that the trace says it means."""

    @property
    def none(self) -> bool:
        """Whether the trace has no records of events at all."""
        return not len(self._on[NONE][0])

    def before(self, row: int, most: int = LOOK_BACK, *, track: int = NONE) -> list[int]:
        """Return the rows of the last records before a call, the latest first: of one thread, or of all."""
        if track not in self._on:
            rows, times = self._on[NONE]
            own = self._slices.track[rows] == track
            self._on[track] = rows[own], times[own]
        records, times = self._on[track]
        count = int(times.searchsorted(self._slices.ts.item(row)))
        found: list[int] = records[max(0, count - most) : count][::-1].tolist()
        return found


class UsedStreams:
    """The streams that threads launched work on.

    Args:
        track: of each launch the thread.
        issued: when each was made, ns.
        stream: the number of each one's stream.
    """

    def __init__(self, track: Int32 | Int64, issued: Int64, stream: Int32 | Int64) -> None:
        self._track, self._issued, self._stream = track, issued, stream

    def before(self, track: int, at: int) -> list[int]:
        """Return the streams of the last launches of a thread before this time (ns), the latest first, each once."""
        issued, stream = self._on.get(track, (_NO_TIMES, _NO_TIMES))
        behind = int(issued.searchsorted(at))
        return list(dict.fromkeys(stream[max(0, behind - LOOK_BACK) : behind][::-1].tolist()))

    @cached_property
    def _on(self) -> dict[int, tuple[Int64, Int32 | Int64]]:
        """Of each thread the launches in order of time: when each was made, and its stream."""
        order = np.argsort(self._issued, kind="stable")
        by_track = ((track, order[places]) for track, places in grouped(self._track[order]))
        return {track: (self._issued[launches], self._stream[launches]) for track, launches in by_track}


__all__ = ["LOOK_BACK", "TRIES", "EventRecords", "UsedStreams"]
