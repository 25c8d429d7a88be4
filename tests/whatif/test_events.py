"""Which work an event stands for in the replay: stated by the trace, or inferred."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from syncscan import api
from syncscan.model.rank import Record, StreamWait
from syncscan.model.trace import Trace
from syncscan.whatif.build import build
from syncscan.whatif.events import coincident_edges
from syncscan.whatif.launch_gaps import find_launches
from syncscan.whatif.replayed_steps import find_steps
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
    """The events that torch's callbacks saw decide which record a wait means."""
    assert launches_before_record(two_records(named=which)) == which + 1


@pytest.mark.parametrize("which", [0, 1])
def test_sync_rows_name_the_record(which: int) -> None:
    """A `cuda_sync` row names the record's call."""
    assert launches_before_record(two_records(rows=which)) == which + 1


def test_the_nearest_possible_record_is_inferred() -> None:
    """Without either, the last record whose work ended before the waiting work began is taken."""
    assert launches_before_record(two_records()) == 2


def test_an_event_synchronize_waits_for_its_record_only() -> None:
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


@pytest.mark.parametrize(("behind", "expected"), [(7, 1), (8, 0)])
def test_the_last_eight_records_are_tried(behind: int, expected: int) -> None:
    """One that explains the wait, with so many behind it whose work ends too late; further back none is sought."""
    with behind_a_record() as t:
        t.launch("later", at=14, lasts=1000)
        for k in range(behind):
            t.call("cudaEventRecord", 20 + 2 * k, 21 + 2 * k)
    assert stream_waits(t) == expected


@pytest.mark.parametrize(("before", "expected"), [(-1.9, True), (-2.1, False), (99, True), (101, False)])
def test_a_callback_is_the_call_within_100_us_after_it(before: float, expected: bool) -> None:
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
    assert launches_before_record(t.trace()) == (1 if expected else 2)


def test_a_record_of_the_waiting_thread_is_found_behind_many_of_another_thread() -> None:
    """Only its own count, however many others lie between."""
    with behind_a_record() as t, t.thread("beside", tid=300):
        for k in range(300):
            t.call("cudaEventRecord", 20 + k / 10, 20.05 + k / 10)
    assert stream_waits(t) == 1


def test_without_records_of_events_a_wait_stands_for_its_own() -> None:
    """Torch 1.12 to 2.1 wrote no `cudaEventRecord`: the wait is mostly made just behind it."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.launch("side", at=start, lasts=300, stream=20)
        t.call("cudaStreamWaitEvent", start + 10, start + 11)
        t.launch("main", at=start + 20, lasts=10, stream=7, begins=start + 302)
    assert stream_waits(t) == 1


def edges(pause: float, behind: float, *, launched_later: bool = False) -> list[tuple[int, int]]:
    """Return the edges of two queued kernels of stream 20, so many µs apart; the second begins so long after stream
    7's.

    Returns:
        For each edge the stream of the work that waits, and of what it waits for.
    """
    t = TraceBuilder()
    begin = 100 + pause
    if not launched_later:
        t.launch(at=1, lasts=begin - behind - 2)
    t.launch(at=10, lasts=89, stream=20)
    t.launch(at=20, lasts=10, stream=20, begins=begin)
    if launched_later:
        t.launch(at=30, lasts=begin - behind - 31)
    trace = t.trace()
    s = trace.slices
    launches = find_launches(trace, int(s.ts.min()), int(s.end.max()))
    of = [number for _, number in launches.streams]
    return [(of[edge.stream], of[edge.event.stream]) for edge in coincident_edges(launches, [])]


def test_a_long_pause_that_ends_with_anothers_work_is_an_edge() -> None:
    """The edge leads from the awaited stream to the one that paused."""
    assert edges(300, 5) == [(20, 7)]


@pytest.mark.parametrize(("pause", "expected"), [(51, 1), (49, 0)])
def test_a_pause_of_fifty_microseconds_is_none_of_the_devices_own(pause: float, expected: int) -> None:
    """Shorter ones come between any two kernels."""
    assert len(edges(pause, 5)) == expected


@pytest.mark.parametrize(("behind", "expected"), [(0, 1), (19.5, 1), (20.5, 0), (-1, 0)])
def test_work_begins_within_twenty_microseconds_of_what_it_waited_for(behind: float, expected: int) -> None:
    """And not before it."""
    assert len(edges(300, behind)) == expected


def test_nothing_waits_for_what_is_launched_after_it() -> None:
    """Nobody could have told it to."""
    assert edges(300, 5, launched_later=True) == []
