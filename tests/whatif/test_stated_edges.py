"""What a trace states about events."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from syncscan import api
from syncscan.model.runtime_calls import is_event_record, is_event_synchronise, is_stream_wait
from syncscan.model.trace import Trace
from syncscan.whatif.build import build
from syncscan.whatif.graph import Record, StreamWait
from syncscan.whatif.replayed_steps import find_steps
from syncscan.whatif.stated_edges import stated_edges
from tests.builder import MAIN, TraceBuilder


def two_records(named: int | None = None, rows: int | None = None) -> Trace:
    """Stream 13 waits for one of two events of stream 7, which stand behind its first and its second kernel.

    Args:
        named: which of the two capture's table says it is.
        rows: which of the two a `cuda_sync` row says it is.
    """
    t = TraceBuilder()
    with t.step(0, 2000):
        calls = []
        for k in range(2):
            t.launch("produce", at=10 + 100 * k, lasts=300)
            t.call("cudaEventRecord", 50 + 100 * k, 51 + 100 * k)
            calls.append(t.events[-1]["args"]["correlation"])
        t.call("cudaStreamWaitEvent", 300, 301)
        wait = t.events[-1]["args"]["correlation"]
        t._free[0, 13] = 700
        t.launch("consume", at=310, lasts=100, stream=13)
    if rows is not None:
        args = {"correlation": wait, "stream": 13, "device": 0, "wait_on_cuda_event_record_corr_id": calls[rows]}
        t.event(ph="X", cat="cuda_sync", name="Stream Wait Event", pid=0, tid=13, ts=300, dur=1, args=args)
    if named is not None:
        seen = [(49, "record", 111), (149, "record", 222), (299, "wait", (111, 222)[named])]
        events = [[t.base_ns + at * 1000, MAIN, kind, event, 0] for at, kind, event in seen]
        t.metadata["syncscan"] = {"events": events}
    return t.trace()


def launches_before_record(trace: Trace) -> int:
    """How many launches lie before the record that the stream waits for."""
    nodes = build(find_steps(trace, [])).programs[0].nodes
    assert any(isinstance(n, StreamWait) for n in nodes)
    at = next(i for i, n in enumerate(nodes) if isinstance(n, Record))
    return sum(getattr(n, "launches", 0) for n in nodes[:at])


@pytest.mark.parametrize("which", [0, 1])
def test_captures_table_names_the_event(which: int) -> None:
    """What torch's callbacks saw decides which record a wait means."""
    assert launches_before_record(two_records(named=which)) == which + 1


@pytest.mark.parametrize("which", [0, 1])
def test_sync_rows_name_the_record(which: int) -> None:
    """A `cuda_sync` row names the record's call."""
    assert launches_before_record(two_records(rows=which)) == which + 1


def test_the_nearest_possible_record_is_inferred() -> None:
    """Without either, the last record whose work ended before the waiting work began is taken."""
    assert launches_before_record(two_records()) == 2


def test_an_event_synchronise_waits_for_its_record_only() -> None:
    """Work launched behind the record doesn't hold the host: 300 of 1,300 µs are waited for."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1500):
        t.launch("before", at=start + 10, lasts=300)
        t.call("cudaEventRecord", start + 12, start + 13)
        t.launch("after", at=start + 14, lasts=1000)
        t.call("cudaEventSynchronize", start + 20, start + 315)
    analysis = api.analyze_trace(t.trace(), step_ms=1.5)
    assert analysis.whatif().baseline_us == pytest.approx(1500, rel=0.01)
    assert analysis.whatif("all").saving_us < 200


@pytest.mark.parametrize(("early", "explains"), [(4, True), (6, False)])
def test_clocks_of_two_streams_differ_by_5_us(early: float, explains: bool) -> None:
    """A record whose work ended a little after the waiting work began may be the one that is meant."""
    t = TraceBuilder()
    with t.step(0, 2000):
        for k in range(2):
            t.launch("produce", at=10 + 100 * k, lasts=300)
            t.call("cudaEventRecord", 50 + 100 * k, 51 + 100 * k)
        t.call("cudaStreamWaitEvent", 300, 301)
        t._free[0, 13] = t.free_at(7) - early
        t.launch("consume", at=310, lasts=100, stream=13)
    assert launches_before_record(t.trace()) == (2 if explains else 1)


@contextmanager
def behind_a_record() -> Iterator[TraceBuilder]:
    """Stream 13 begins right behind the work that stream 7 has recorded; what is added comes between the two."""
    t = TraceBuilder()
    with t.step(0, 2000):
        t.launch("produce", at=10, lasts=100)
        t.call("cudaEventRecord", 12, 13)
        yield t
        t.call("cudaStreamWaitEvent", 100, 101)
        t._free[0, 13] = 111
        t.launch("consume", at=105, lasts=100, stream=13)


def stream_waits(t: TraceBuilder) -> int:
    """How many stream waits have an event."""
    return sum(isinstance(n, StreamWait) for n in build(find_steps(t.trace(), [])).programs[0].nodes)


@pytest.mark.parametrize(("behind", "found"), [(7, 1), (8, 0)])
def test_the_last_eight_records_are_tried(behind: int, found: int) -> None:
    """One that explains the wait, with so many behind it whose work ends too late; further back none is sought."""
    with behind_a_record() as t:
        t.launch("later", at=14, lasts=1000)
        for k in range(behind):
            t.call("cudaEventRecord", 20 + 2 * k, 21 + 2 * k)
    assert stream_waits(t) == found


@pytest.mark.parametrize(("before", "told"), [(-1.9, True), (-2.1, False), (99, True), (101, False)])
def test_a_callback_is_the_call_within_100_us_after_it(before: float, told: bool) -> None:
    """It fires so long before its call, or up to 2 µs after its begin, clocks allowed for."""
    t = TraceBuilder()
    with t.step(0, 2000):
        for k in range(2):
            t.launch("produce", at=10 + 300 * k, lasts=100)
            t.call("cudaEventRecord", 200 + 300 * k, 201 + 300 * k)
        t.call("cudaStreamWaitEvent", 800, 801)
        t.launch("consume", at=810, lasts=100, stream=13)
    seen = [(200 - before, "record", 111), (499, "record", 222), (799, "wait", 111)]
    events = [[t.base_ns + round(at * 1000), MAIN, kind, event, 0] for at, kind, event in seen]
    t.metadata["syncscan"] = {"events": events}
    assert launches_before_record(t.trace()) == (1 if told else 2)


@pytest.mark.parametrize(("others", "found"), [(255, 1), (256, 0)])
def test_the_last_256_records_of_all_threads_are_looked_through(others: int, found: int) -> None:
    """For the waiting thread's own; one that lies behind so many of another thread's isn't sought."""
    with behind_a_record() as t, t.thread("beside", tid=300):
        for k in range(others):
            t.call("cudaEventRecord", 20 + k / 10, 20.05 + k / 10)
    assert stream_waits(t) == found


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
    """What the callbacks saw of events in the order in which it is stored: when (µs), what, and of which event."""
    table = t.metadata.setdefault("syncscan", {})
    events = [[t.base_ns + round(at * 1000), tid, kind, event, 0] for at, kind, event in calls]
    table["events"] = [*table.get("events", []), *events]


def synchronised(t: TraceBuilder, *calls: tuple[float, str, int | str]) -> None:
    """What the callbacks saw of the host's synchronises: when (µs), of what, and its handle."""
    syncs = [[t.base_ns + round(at * 1000), MAIN, kind, -1, -1, handle] for at, kind, handle in calls]
    t.metadata.setdefault("syncscan", {})["lines"] = {"source": "callbacks", "syncs": syncs}


def sync_row(t: TraceBuilder, wait: int, record: int) -> None:
    """A `cuda_sync` row of one call that names another one's correlation."""
    args = {"correlation": wait, "stream": 13, "device": 0, "wait_on_cuda_event_record_corr_id": record}
    t.event(ph="X", cat="cuda_sync", name="Stream Wait Event", pid=0, tid=13, ts=300, dur=1, args=args)


def correlation(t: TraceBuilder, at: float) -> int:
    """That of the call at this time (µs)."""
    found: int = next(e["args"]["correlation"] for e in t.events if e["ts"] == at)
    return found


def stated(t: TraceBuilder) -> dict[float, float]:
    """When each wait and its record began, µs."""
    trace = t.trace()
    s = trace.slices
    records, waits = (
        rows[np.argsort(s.ts[rows], kind="stable")]
        for rows in (
            np.flatnonzero(trace.named(is_event_record)),
            np.flatnonzero(trace.named(lambda name: is_stream_wait(name) or is_event_synchronise(name))),
        )
    )
    found = stated_edges(trace, records, waits)
    return {float(s.ts[wait]) / 1e3: float(s.ts[record]) / 1e3 for wait, record in found.items()}


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
    ("kind", "handle", "told"), [("event", "a", True), ("event", 0, False), ("stream", "a", False)]
)
def test_a_synchronise_of_an_event_waits_for_its_record(kind: str, handle: int | str, told: bool) -> None:
    """The host's, as the callbacks stored it beside its stack; other synchronises aren't about events."""
    t = story("cudaEventSynchronize")
    seen(t, (99, "record", "a"), (199, "record", "b"), (198, "record", 0))
    synchronised(t, (299, kind, handle))
    assert stated(t) == ({300.0: 100.0} if told else {})


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
    """Of two in the time allowed."""
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
