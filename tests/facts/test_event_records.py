"""Which records a wait for an event may mean, and on which streams they may stand."""

from __future__ import annotations

import numpy as np

from syncscan.facts.event_records import LOOK_BACK, EventRecords, UsedStreams
from syncscan.model.trace import Trace
from tests.builder import TraceBuilder


def two_threads() -> Trace:
    """Two threads that record an event each 10 µs, and one of them waits at 45 µs."""
    t = TraceBuilder()
    for at in (10, 30, 50):
        t.call("cudaEventRecord", at, at + 1)
    t.call("cudaEventSynchronize", 45, 46)
    with t.thread("worker"):
        for at in (20, 40):
            t.call("cudaEventRecord", at, at + 1)
    return t.trace()


def test_the_last_records_before_a_wait_come_first() -> None:
    """They are the records of its own thread, or of all; as many as the caller wants."""
    trace = two_threads()
    records, s = EventRecords(trace), trace.slices
    (wait,) = [row for row in range(len(s)) if trace.name(row) == "cudaEventSynchronize"]
    track = s.track.item(wait)
    assert s.ts[records.before(wait)].tolist() == [40_000, 30_000, 20_000, 10_000]
    assert s.ts[records.before(wait, track=track)].tolist() == [30_000, 10_000]
    assert s.ts[records.before(wait, 1, track=track)].tolist() == [30_000]


def test_the_streams_that_a_thread_used_last_come_first() -> None:
    """Each once; none that only another thread used, nor one of a launch at that time or later."""
    tracks, issued, streams = np.array([0, 0, 1, 0, 0]), np.array([1, 2, 3, 4, 5]), np.array([7, 8, 9, 7, 6])
    used = UsedStreams(tracks, issued, streams)
    assert used.before(0, 5) == [7, 8]
    assert used.before(0, 3) == [8, 7]
    assert (used.before(1, 3), used.before(1, 4), used.before(2, 9)) == ([], [9], [])


def test_launches_are_looked_back_over_to_a_limit() -> None:
    """A stream that was used for nothing since then is none."""
    streams = np.array([1, *[0] * LOOK_BACK])
    used = UsedStreams(np.zeros(len(streams), np.int64), np.arange(len(streams)), streams)
    assert (used.before(0, LOOK_BACK), used.before(0, LOOK_BACK + 1)) == ([0, 1], [0])
