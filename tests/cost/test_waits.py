"""Waits end as they should without a device, without a record, and on other threads."""

from __future__ import annotations

import pytest

from syncscan.cost import costs_of
from syncscan.detect import detect
from syncscan.model.finding import Cost
from tests.builder import MAIN, TraceBuilder


def costs(t: TraceBuilder) -> list[Cost]:
    trace = t.trace()
    points, _ = detect(trace)
    return list(costs_of(trace, points))


def test_without_device_work_the_whole_call_is_the_wait() -> None:
    """Nothing tells what it waited for, and no device stood idle."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.call("cudaDeviceSynchronize", 10, 60)
    assert costs(t) == [Cost(wait_ns=50_000, bubble_ns=0)]


def test_an_event_without_a_record_is_all_work_before_the_call() -> None:
    """The record lies before the recording, or on another thread."""
    t = TraceBuilder()
    with t.step(0, 3000):
        t.launch(at=1, lasts=100)
        t.call("cudaEventSynchronize", 20, 103)
    (cost,) = costs(t)
    assert cost.wait_ns == (102 - 20) * 1000


def test_another_threads_record_doesnt_explain_it_better() -> None:
    """The waiting thread's own last record counts first."""
    t = TraceBuilder()
    with t.step(0, 3000):
        t.launch(at=1, lasts=100)
        t.call("cudaEventRecord", 5, 6)
        t.launch(at=10, lasts=1000)
        with t.thread("other"):
            t.call("cudaEventRecord", 15, 16)
        t.call("cudaEventSynchronize", 20, 103)
    (cost,) = costs(t)
    assert cost.wait_ns == (102 - 20) * 1000


def test_the_last_record_before_the_call_counts() -> None:
    """Not the first, and none that comes later."""
    t = TraceBuilder()
    with t.step(0, 3000):
        t.launch(at=1, lasts=10)
        t.call("cudaEventRecord", 2, 3)
        t.launch(at=4, lasts=90)
        t.call("cudaEventRecord", 6, 7)
        t.launch(at=10, lasts=1000)
        t.call("cudaEventSynchronize", 20, 103)
        t.call("cudaEventRecord", 105, 106)
    (cost,) = costs(t)
    assert cost.wait_ns == (102 - 20) * 1000


def test_a_copy_of_pageable_memory_and_its_synchronize_wait_one_after_the_other() -> None:
    """The copy's call for its own µs of it, the synchronize for the rest; the copy isn't counted twice."""
    t = TraceBuilder()
    t.sync("aten::item", at=10, wait=300, copy="Memcpy DtoH (Device -> Pageable)")
    (cost,) = costs(t)
    assert cost.wait_ns == (1 + 300) * 1000


def test_a_sync_that_awaited_nothing_has_no_part_in_the_idle_time_around_it() -> None:
    """It is behind the one that held the host, up to the next work and past the second synchronize."""
    t = TraceBuilder()
    with t.step(0, 9000):
        t.launch(at=0, lasts=400)
        t.synchronize(at=2)
        t.call("cudaDeviceSynchronize", 450, 480)
        t.launch(at=600, lasts=10)
    assert [c.bubble_ns for c in costs(t)] == [(601 - 401) * 1000, 0]


def test_two_syncs_with_work_between_have_each_the_idle_time_up_to_it() -> None:
    """The second waited for work, and before that work began the device idled behind the first."""
    t = TraceBuilder()
    with t.step(0, 9000):
        for at in (10, 500):
            t.launch(at=at, lasts=300)
            t.synchronize(at=at + 2)
        t.launch(at=900, lasts=10)
    assert [c.bubble_ns for c in costs(t)] == [(501 - 311) * 1000, (901 - 801) * 1000]


def test_of_syncs_one_after_the_other_the_last_is_blamed() -> None:
    """With the first gone the host would have been held by the second all the same."""
    t = TraceBuilder()
    with t.step(0, 9000):
        t.launch(at=1, lasts=500, stream=20)
        t.launch(at=5, lasts=400, stream=7)
        t.synchronize(at=10, api="cudaStreamSynchronize", stream=7)
        t.synchronize(at=420)
        t.launch(at=550, lasts=10)
    assert [c.bubble_ns for c in costs(t)] == [0, (551 - 502) * 1000]


@pytest.mark.parametrize(("main", "other"), [(50, 100), (100, 50)])
def test_of_threads_that_wait_for_the_same_work_the_one_held_longest_is_blamed(main: float, other: float) -> None:
    """The device stands idle once, not once a thread."""
    t = TraceBuilder()
    with t.step(0, 9000):
        t.launch(at=0, lasts=400)
        t.synchronize(at=main)
        with t.thread("other"):
            t.synchronize(at=other)
        t.launch(at=600, lasts=10)
    matches = {c.wait_ns: c.bubble_ns for c in costs(t)}
    assert matches == {301_000: 0, 351_000: (601 - 401) * 1000}


def test_devices_stand_idle_each_behind_its_own_sync() -> None:
    """The other device's work ends no idle time, and both may be idle at once."""
    t = TraceBuilder()
    with t.step(0, 9000):
        for device, tid in enumerate((MAIN, MAIN + 1)):
            with t.thread("worker", tid):
                t.launch(at=0, lasts=400 + device, stream=7 + device, device=device)
                t.sync("aten::item", at=10, stream=7 + device, device=device)
                t.launch(at=600, lasts=10, stream=7 + device, device=device)
    assert [c.bubble_ns for c in costs(t)] == [(601 - 403) * 1000, (601 - 404) * 1000]
