"""The record that a wait is for is stated by the trace, or one of the last."""

from __future__ import annotations

import numpy as np
import pytest

from syncscan.facts.event_records import LOOK_BACK, EventRecords, UsedStreams, stated_edges
from syncscan.model.runtime_calls import is_event_record, is_event_synchronize, is_stream_wait
from syncscan.model.trace import Trace
from tests.builder import MAIN, TraceBuilder


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


RECORDS = (100.0, 200.0)
"""When the two events of `story` are recorded, µs."""


def story(api: str = "cudaStreamWaitEvent") -> TraceBuilder:
    """A thread that records two events and then waits for one, at 300 µs."""
    t = TraceBuilder()
    for at in RECORDS:
        t.call("cudaEventRecord", at, at + 1)
    t.call(api, 300, 301)
    return t


def seen(t: TraceBuilder, *calls: tuple[float, str, int | str], tid: int = MAIN) -> None:
    """Build the events that callbacks saw, in the order in which they are stored: when (µs), what, and of which
    event.
    """
    table = t.metadata.setdefault("syncscan", {})
    events = [[t.base_ns + round(at * 1000), tid, kind, event, 0] for at, kind, event in calls]
    table["events"] = [*table.get("events", []), *events]


def synchronized(t: TraceBuilder, *calls: tuple[float, str, int | str]) -> None:
    """Build the host's synchronizes that callbacks saw: when (µs), of what, and its handle."""
    syncs = [[t.base_ns + round(at * 1000), MAIN, kind, -1, -1, handle] for at, kind, handle in calls]
    t.metadata.setdefault("syncscan", {})["lines"] = {"source": "callbacks", "syncs": syncs}


def sync_row(t: TraceBuilder, wait: int, record: int) -> None:
    """A `cuda_sync` row of one call that names another one's correlation."""
    args = {"correlation": wait, "stream": 13, "device": 0, "wait_on_cuda_event_record_corr_id": record}
    t.event(ph="X", cat="cuda_sync", name="Stream Wait Event", pid=0, tid=13, ts=300, dur=1, args=args)


def correlation(t: TraceBuilder, at: float) -> int:
    """Return the correlation id of the call at this time (µs)."""
    match: int = next(e["args"]["correlation"] for e in t.events if e["ts"] == at)
    return match


def stated(t: TraceBuilder) -> dict[float, float]:
    """When each wait and its record began, µs."""
    trace = t.trace()
    s = trace.slices
    records, waits = (
        rows[np.argsort(s.ts[rows], kind="stable")]
        for rows in (
            np.flatnonzero(trace.named(is_event_record)),
            np.flatnonzero(trace.named(lambda name: is_stream_wait(name) or is_event_synchronize(name))),
        )
    )
    result = stated_edges(trace, records, waits)
    return {float(s.ts[wait]) / 1e3: float(s.ts[record]) / 1e3 for wait, record in result.items()}


def test_without_a_source_nothing_is_stated() -> None:
    """The calls alone don't say which event they are about."""
    assert stated(story()) == {}


@pytest.mark.parametrize("which", [0, 1])
def test_the_callbacks_tell_by_the_event(which: int) -> None:
    """By its address, whatever was recorded in between."""
    t = story()
    seen(t, (99, "record", "a"), (199, "record", "b"), (299, "wait", "ab"[which]))
    assert stated(t) == {300.0: RECORDS[which]}


def test_of_an_event_that_is_recorded_again_the_last_record_before_the_wait_counts() -> None:
    """In the order of time, not of the table; a record behind the wait is another one's."""
    t = story()
    t.call("cudaEventRecord", 400, 401)
    seen(t, (399, "record", "a"), (299, "wait", "a"), (199, "record", "a"), (99, "record", "a"))
    assert stated(t) == {300.0: 200.0}


def test_an_event_that_was_recorded_before_the_recording_tells_nothing() -> None:
    """Its record isn't there; no other event's stands in."""
    t = story()
    seen(t, (99, "record", "a"), (199, "record", "b"), (299, "wait", "c"))
    assert stated(t) == {}


@pytest.mark.parametrize(
    ("kind", "handle", "expected"), [("event", "a", True), ("event", 0, False), ("stream", "a", False)]
)
def test_a_synchronize_of_an_event_waits_for_its_record(kind: str, handle: int | str, expected: bool) -> None:
    """The host's, as the callbacks stored it beside its stack; other synchronizes aren't about events."""
    t = story("cudaEventSynchronize")
    seen(t, (99, "record", "a"), (199, "record", "b"), (198, "record", 0))
    synchronized(t, (299, kind, handle))
    assert stated(t) == ({300.0: 100.0} if expected else {})


def test_a_callback_is_of_its_own_thread() -> None:
    """A call that another thread makes sooner is passed over, and without one of its own nothing is told."""
    t = TraceBuilder()
    for tid in (MAIN + 1, MAIN):
        with t.thread("worker", tid):
            t.call("cudaEventRecord", 101 + (tid == MAIN), 103)
            t.call("cudaStreamWaitEvent", 301 + (tid == MAIN), 303)
    seen(t, (100, "record", "a"), (300, "wait", "a"))
    assert stated(t) == {302.0: 102.0}
    t.metadata["syncscan"] = {}
    seen(t, (100, "record", "a"), (300, "wait", "a"), tid=4242)
    assert stated(t) == {}


def test_a_callback_is_the_first_call_behind_it() -> None:
    """Two calls lie within the allowed time."""
    t = story()
    t.call("cudaEventRecord", 110, 111)
    t.call("cudaStreamWaitEvent", 310, 311)
    seen(t, (99, "record", "a"), (299, "wait", "a"))
    assert stated(t) == {300.0: 100.0}


@pytest.mark.parametrize("which", [0, 1])
def test_a_row_names_the_records_call(which: int) -> None:
    """Also where the callbacks say another one: the row is the driver's own word."""
    t = story()
    seen(t, (99, "record", "a"), (199, "record", "b"), (299, "wait", "ba"[which]))
    sync_row(t, correlation(t, 300), correlation(t, RECORDS[which]))
    assert stated(t) == {300.0: RECORDS[which]}


def test_each_source_tells_what_the_other_one_doesnt() -> None:
    """One wait has a row, another one a callback."""
    t = story()
    t.call("cudaStreamWaitEvent", 500, 501)
    sync_row(t, correlation(t, 300), correlation(t, 100))
    seen(t, (199, "record", "b"), (499, "wait", "b"))
    assert stated(t) == {300.0: 100.0, 500.0: 200.0}


@pytest.mark.parametrize("named", [-1, 9_999, "wait"])
def test_a_row_that_names_no_record_tells_nothing(named: int | str) -> None:
    """None, one from before the recording, and a call that records nothing."""
    t = story()
    own = correlation(t, 300)
    sync_row(t, own, own if named == "wait" else int(named))
    assert stated(t) == {}
