"""A sync point's wait is the part of its call during which the backlog still ran, and nothing else."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from syncscan.cost import costs_of, step_summary
from syncscan.detect import detect
from syncscan.facts.device_work import DeviceWork
from syncscan.model.finding import Attribution, Cost, Occurrence, Phase, SyncPoint
from syncscan.model.integrity import SOUND
from syncscan.model.trace import Trace
from tests.builder import MAIN, TraceBuilder


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
    """The copy call in front of the synchronize returns at once, however long it takes to be issued."""
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


def test_a_wait_is_never_longer_than_its_sync():
    """A damaged trace may say of a copy and of the synchronize behind it that they held the host side by side."""
    t = TraceBuilder()
    with t.op("aten::to", 5, 150), t.op("aten::copy_", 6, 149):
        t.copy("Memcpy HtoD (Pageable -> Device)", at=10, lasts=100, blocks=True)
        t.call("cudaStreamSynchronize", 20, 114, stream=7)
    _, ((point, cost),) = measured(t)
    assert (point.end - point.ts, cost.wait_ns) == (104_000, 104_000)


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
    """A device synchronize holds the host for the slowest stream."""
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


def test_the_bubble_ends_where_the_next_work_begins():
    """The host is free from then on: the device runs dry twice more at its own pace."""
    t = TraceBuilder()
    with t.step(0, 3000):
        t.sync("aten::item", at=10, wait=300)
        for at in (400, 500, 600):
            t.launch(at=at, lasts=10)
    assert cost_of(t).bubble_ns == (401 - 314) * 1000


def test_no_bubble_where_the_device_had_run_dry_before():
    """The host came late by itself, and the synchronize that it then met awaited nothing."""
    t = TraceBuilder()
    with t.step(0, 3000):
        t.launch(at=0, lasts=10)
        t.call("cudaDeviceSynchronize", 100, 130)
        t.launch(at=400, lasts=10)
    assert cost_of(t) == Cost(wait_ns=0, bubble_ns=0)


def test_no_bubble_without_a_next_work():
    """How long the device would have stood idle isn't in the trace."""
    t = TraceBuilder()
    with t.step(0, 3000):
        t.sync("aten::item", at=10, wait=300)
    assert cost_of(t).bubble_ns == 0


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
    """The device's own delays are no sync's fault: 100 µs before the awaited work, and 160 µs after it."""
    t = TraceBuilder()
    with t.step(0, 9000):
        t.launch(at=0, lasts=10)
        t._free[0, 7] = 100
        t.launch(at=2, lasts=50)
        t.call("cudaStreamSynchronize", 20, 170)
        with t.thread("other"):
            t.launch(at=160, lasts=100, stream=20, begins=350)
    assert cost_of(t).bubble_ns == (160 - 150) * 1000


def test_no_bubble_before_work_that_lay_there_all_along():
    """It was launched before the sync, lies until 350, and is the next to begin: the device then idles later on."""
    t = TraceBuilder()
    with t.step(0, 9000):
        t.launch(at=0, lasts=100)
        with t.thread("other"):
            t.launch(at=3, lasts=100, stream=20, begins=350)
        t.call("cudaStreamSynchronize", 20, 102)
        t.launch(at=500, lasts=5)
    assert cost_of(t).bubble_ns == 0


def test_work_without_a_launch_in_the_trace_was_not_waiting():
    """Nobody knows when it was launched: the driver's launches aren't recorded before torch 2.1."""
    t = TraceBuilder()
    with t.step(0, 9000):
        t.launch(at=0, lasts=100)
        t.call("cudaStreamSynchronize", 2, 130)
        with t.thread("other"):
            t.launch(at=114, lasts=10, stream=20)
            t.events[-2]["args"]["correlation"] = 1
            t.launch(at=120, lasts=10)
    assert cost_of(t).bubble_ns == (115 - 101) * 1000


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
"""For each sync: the host's gap before it, how long it waits, and the work launched behind it."""


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
def test_any_reported_wait_is_measured(story: list[tuple[int, int, int]]):
    """Whatever runs before and behind, each wait is from the synchronize's begin to the end of the work."""
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


ACTS = ("launch", "launch on 20", "synchronize", "synchronize on 20", "read back")
acts = st.lists(
    st.tuples(st.sampled_from(ACTS), st.integers(1, 80), st.integers(1, 200)),
    min_size=2,
    max_size=12,
)
"""Acts of a thread: the kind, the time until it, and how long the work lasts."""


def act(t: TraceBuilder, kind: str, at: float, lasts: int) -> float:
    """Tell one act; returns when its thread goes on."""
    stream = 20 if kind.endswith("20") else 7
    if kind.startswith("launch"):
        t.launch(at=at, lasts=lasts, stream=stream)
        return at + 2
    if kind == "read back":
        return t.sync("aten::item", at=at) + 1
    api = "cudaStreamSynchronize" if stream == 20 else "cudaDeviceSynchronize"
    t.synchronize(at=at, api=api, stream=20 if stream == 20 else None)
    return max(at, t.free_at(20) if stream == 20 else max(t.free_at(7), t.free_at(20))) + 2


def two_threads(first: list[tuple[str, int, int]], second: list[tuple[str, int, int]]) -> TraceBuilder:
    """A trace in which two threads launch and wait side by side, told in the order of time."""
    t = TraceBuilder()
    t.step(0, 10_000)
    threads = {MAIN: (0.0, list(first)), MAIN + 1: (0.0, list(second))}
    while left := [tid for tid, (_, story) in threads.items() if story]:
        tid = min(left, key=lambda one: threads[one][0] + threads[one][1][0][1])
        now, ((what, gap, lasts), *rest) = threads[tid]
        with t.thread("worker", tid):
            threads[tid] = act(t, what, now + gap, lasts), rest
    return t


@given(acts, acts)
def test_idle_time_is_blamed_once(first: list[tuple[str, int, int]], second: list[tuple[str, int, int]]):
    """A bubble is idle time, no two overlap, and only what waited has one."""
    trace, points = measured(two_threads(first, second))
    work = DeviceWork(trace).of(0)
    bubbles = [
        (begin, begin + cost.bubble_ns)
        for point, cost in points
        if cost.bubble_ns
        for begin in work.idle_from(np.array([point.released])).tolist()
    ]
    assert all(work.busy_within(*bubble) == 0 for bubble in bubbles)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(sorted(bubbles)))
    assert all(cost.wait_ns for _, cost in points if cost.bubble_ns)


@given(acts, acts)
def test_bubbles_are_never_more_than_the_idle_time(
    first: list[tuple[str, int, int]], second: list[tuple[str, int, int]]
):
    """It holds for the sum of a step too."""
    trace, points = measured(two_threads(first, second))
    nowhere = Attribution("", (), (), (), None, None, "unknown", Phase.OTHER, "", None)
    step = step_summary(trace, [Occurrence(point, nowhere, cost) for point, cost in points], SOUND)
    work = DeviceWork(trace).of(0)
    if not len(work.begins):
        return
    begin, end = int(work.begins[0]), int(work.busy_to[-1])
    idle = end - begin - work.busy_within(begin, end)
    assert sum(cost.bubble_ns for _, cost in points) <= idle
    assert step.bubble_us <= step.device_idle_us
