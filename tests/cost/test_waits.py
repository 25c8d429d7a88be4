"""What a wait ends with where the plain story doesn't hold: without a device, without a record, on other threads."""

from __future__ import annotations

from syncscan.cost import costs_of
from syncscan.detect import detect
from syncscan.model.finding import Cost
from tests.builder import TraceBuilder


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


def test_a_copy_of_pageable_memory_and_its_synchronise_wait_one_after_the_other() -> None:
    """The copy's call for its own µs of it, the synchronise for the rest; the copy isn't counted twice."""
    t = TraceBuilder()
    t.sync("aten::item", at=10, wait=300, copy="Memcpy DtoH (Device -> Pageable)")
    (cost,) = costs(t)
    assert cost.wait_ns == (1 + 300) * 1000


def test_two_syncs_share_the_idle_time_between_them() -> None:
    """The bubble of each ends where the next sync begins, in whatever order they were found."""
    t = TraceBuilder()
    with t.step(0, 9000):
        for at in (10, 1000):
            t.launch(at=at, lasts=300)
            t.synchronize(at=at + 2)
        t.launch(at=1400, lasts=10)
    assert [c.bubble_ns for c in costs(t)] == [300_000, 100_000]
