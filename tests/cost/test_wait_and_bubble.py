"""What a sync point costs: the wait is the part of the call during which earlier work still ran, and nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from syncscan.cost import costs_of
from syncscan.detect import detect
from syncscan.model.finding import Cost, SyncPoint
from syncscan.model.trace import Trace
from tests.builder import TraceBuilder


def measured(t: TraceBuilder) -> tuple[Trace, list[tuple[SyncPoint, Cost]]]:
    """The trace, and each of its sync points with its cost."""
    trace = t.trace()
    points, _ = detect(trace)
    return trace, list(zip(points, costs_of(trace, points), strict=True))


def cost_of(t: TraceBuilder) -> Cost:
    """The cost of the one sync point."""
    _, ((_, cost),) = measured(t)
    return cost


def test_the_wait_ends_with_the_work():
    """A read-back waits until its stream is done; the µs in which the call returns is overhead, not wait."""
    t = TraceBuilder()
    t.sync("aten::nonzero", at=10, wait=300)
    assert cost_of(t).wait_ns == 300_000


def test_a_pinned_copy_does_not_wait():
    """The copy call in front of the synchronise returns at once, however long it takes to be issued."""
    t = TraceBuilder()
    t.launch(at=0, lasts=500)
    t.sync("aten::item", at=10)
    assert cost_of(t).wait_ns == (503 - 14) * 1000


def test_a_pageable_copy_waits_in_its_own_call():
    """A copy from the device to pageable memory holds the host for the work before it and for itself."""
    t = TraceBuilder()
    t.launch(at=0, lasts=100)
    with t.op("aten::copy_", 5, 150):
        t.copy("Memcpy DtoH (Device -> Pageable)", at=10, lasts=20, blocks=True)
    assert cost_of(t).wait_ns == (121 - 10) * 1000


def test_a_sync_behind_finished_work_costs_nothing():
    """Nothing runs, so nothing is waited for."""
    t = TraceBuilder()
    with t.step(0, 3000):
        t.launch(at=1, lasts=10)
        t.synchronize(at=100)
    assert cost_of(t).wait_ns == 0


def test_a_stream_sync_waits_for_its_stream_only():
    """Work of another stream isn't waited for."""
    t = TraceBuilder()
    t.launch(at=0, lasts=1000, stream=20)
    t.sync("aten::item", at=10, wait=50)
    assert cost_of(t).wait_ns == 50_000


def test_a_device_sync_waits_for_every_stream():
    """A device synchronise holds the host for the slowest stream."""
    t = TraceBuilder()
    with t.step(0, 3000):
        t.launch(at=1, lasts=100, stream=7)
        t.launch(at=5, lasts=1000, stream=20)
        t.synchronize(at=10)
    assert cost_of(t).wait_ns == (1006 - 10) * 1000


def test_an_event_sync_waits_for_the_work_before_the_record():
    """Work launched after the event was recorded isn't waited for."""
    t = TraceBuilder()
    with t.step(0, 3000):
        t.launch(at=1, lasts=100)
        t.call("cudaEventRecord", 5, 6)
        t.launch(at=10, lasts=1000)
        t.call("cudaEventSynchronize", 20, 103)
    assert cost_of(t).wait_ns == (102 - 20) * 1000


def test_a_hip_copy_waits_in_one_call():
    """`hipMemcpyWithStream` holds the host for the work before it and for itself."""
    t = TraceBuilder(vendor="rocm")
    t.launch(at=0, lasts=100)
    t.sync("aten::item", at=10)
    assert cost_of(t).wait_ns == (103 - 13) * 1000


def test_the_bubble_is_the_idle_time_that_the_wait_made():
    """The device stands idle from the end of its work to the next launch, which the wait held up."""
    t = TraceBuilder()
    with t.step(0, 3000):
        t.sync("aten::item", at=10, wait=300)
        t.launch(at=400, lasts=100)
    assert cost_of(t).bubble_ns == (401 - 314) * 1000


def test_no_bubble_while_another_stream_works():
    """A device that works on another stream doesn't stand idle."""
    t = TraceBuilder()
    with t.step(0, 3000):
        t.launch(at=1, lasts=2000, stream=20)
        t.sync("aten::item", at=10, wait=300)
        t.launch(at=400, lasts=100)
    assert cost_of(t).bubble_ns == 0


def test_the_bubble_is_never_longer_than_the_call():
    """Idle time beyond the length of the call isn't the sync's doing."""
    t = TraceBuilder()
    with t.step(0, 9000):
        end = t.sync("aten::item", at=10, wait=20)
        t.launch(at=8000, lasts=100)
    assert end == 36
    assert cost_of(t).bubble_ns <= 25_000


def test_no_bubble_while_launched_work_waits():
    """What the device lets lie is no sync's fault: here for 100 µs before, and for 200 behind what was awaited."""
    t = TraceBuilder()
    with t.step(0, 9000):
        t.launch(at=0, lasts=10)
        t._free[0, 7] = 100
        t.launch(at=2, lasts=50)
        with t.thread("other"):
            t._free[0, 20] = 350
            t.launch(at=3, lasts=100, stream=20)
        t.call("cudaStreamSynchronize", 20, 152)
        t.launch(at=500, lasts=5)
    assert cost_of(t).bubble_ns == (501 - 450) * 1000


def test_work_without_a_launch_in_the_trace_was_not_waiting():
    """Nobody knows when it was launched: the driver's launches aren't recorded before torch 2.1."""
    t = TraceBuilder()
    with t.step(0, 9000):
        t.launch(at=0, lasts=100)
        t.call("cudaStreamSynchronize", 2, 102)
        t.launch(at=150, lasts=10, stream=20)
        t.events[-2]["args"]["correlation"] = 1
        t.launch(at=200, lasts=10)
    assert cost_of(t).bubble_ns == 90_000


def test_a_wait_for_another_streams_work_is_measured_by_it():
    """The block proves it: 2.8 ms, though the last launch went to a stream that was long done."""
    t = TraceBuilder()
    with t.step(0, 9000):
        t.launch(at=1, lasts=3000, stream=7)
        t.launch(at=4, lasts=100, stream=20)
        t.call("cudaStreamSynchronize", 200, 3010)
        t.launch(at=3020, lasts=10, stream=20)
    assert cost_of(t) == Cost(wait_ns=2_802_000, bubble_ns=19_000)


stories = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 300), st.integers(0, 60)), min_size=1, max_size=8)
"""Of each sync: the host's gap before it, how long it waits, and the work launched behind it."""


def told(story: list[tuple[int, int, int]]) -> TraceBuilder:
    t = TraceBuilder()
    with t.step(0, 10_000):
        at = 0.0
        for gap, wait, lasts in story:
            behind = max(0.0, t.free_at() - at - gap) + 10
            at = t.sync("aten::item", at=at + gap, wait=behind + wait)
            if lasts:
                t.launch(at=at + 1, lasts=lasts)
                at += 2
    return t


@given(stories)
def test_any_told_wait_is_measured(story: list[tuple[int, int, int]]):
    """Whatever runs before and behind, each wait is from the synchronise's begin to the end of the work."""
    trace, points = measured(told(story))
    expected = [int(trace.slices.dur[point.calls[-1]]) - 1000 for point, _ in points]
    assert [cost.wait_ns for _, cost in points] == expected


@given(stories)
def test_costs_are_never_more_than_the_call(story: list[tuple[int, int, int]]):
    """Neither wait nor bubble is negative, and neither exceeds the time that the host was held."""
    _, points = measured(told(story))
    for point, cost in points:
        assert 0 <= cost.wait_ns <= point.end - point.ts
        assert 0 <= cost.bubble_ns <= point.end - point.ts


@given(stories)
def test_bubbles_are_idle_time(story: list[tuple[int, int, int]]):
    """Together they are never more than the device stood idle."""
    trace, points = measured(told(story))
    s, device = trace.slices, trace.device_rows
    idle = int(s.end[device].max() - min(point.ts for point, _ in points)) - int(s.dur[device].sum())
    assert sum(cost.bubble_ns for _, cost in points) <= idle
