"""The wait and the bubble of a sync point."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan import cost
from syncscan.cost import step_summary
from syncscan.cost.wait_and_bubble import Queued
from syncscan.detect import detect
from syncscan.facts.device_work import DeviceWork
from syncscan.model.finding import SyncPoint
from syncscan.model.step import SOUND
from syncscan.model.trace import Trace
from tests.builder import MAIN, TraceBuilder


def measured(t: TraceBuilder) -> tuple[Trace, tuple[SyncPoint, ...]]:
    """The trace, and its sync points with their costs."""
    trace = t.trace()
    points, _ = detect(trace)
    return trace, cost.measured(trace, points)


def cost_of(t: TraceBuilder) -> SyncPoint:
    """The one sync point, with its cost."""
    _, (point,) = measured(t)
    return point


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
    _, (point,) = measured(t)
    assert (point.end - point.ts, point.wait_ns) == (104_000, 104_000)


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
    assert costs(t) == [(0, 0)]


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
    assert costs(t) == [(2_802_000, 19_000)]


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
    expected = [int(trace.slices.dur[point.calls[-1]]) - 1000 for point in points]
    assert [point.wait_ns for point in points] == expected


@given(stories)
def test_costs_are_never_more_than_the_call(story: list[tuple[int, int, int]]):
    """Neither wait nor bubble is negative, and neither exceeds the time that the host was held."""
    _, points = measured(told(story))
    for point in points:
        assert 0 <= point.wait_ns <= point.end - point.ts
        assert 0 <= point.bubble_ns <= point.end - point.ts


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
        (begin, begin + point.bubble_ns)
        for point in points
        if point.bubble_ns
        for begin in work.idle_from(np.array([point.released])).tolist()
    ]
    assert all(work.busy.between(*bubble) == 0 for bubble in bubbles)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(sorted(bubbles)))
    assert all(point.wait_ns for point in points if point.bubble_ns)


@given(acts, acts)
def test_bubbles_are_never_more_than_the_idle_time(
    first: list[tuple[str, int, int]], second: list[tuple[str, int, int]]
):
    """It holds for the sum of a step too."""
    trace, points = measured(two_threads(first, second))
    step = step_summary(trace, points, SOUND)
    work = DeviceWork(trace).of(0)
    if not len(work.begins):
        return
    begin, end = int(work.begins[0]), int(work.busy.ends[-1])
    idle = end - begin - work.busy.between(begin, end)
    assert sum(point.bubble_ns for point in points) <= idle
    assert step.bubble_us <= step.device_idle_us


@pytest.mark.parametrize("streams", [(7, 7, 7), (7, 8, 8)])
def test_work_that_begins_as_it_was_launched_waits_from_its_own_launch(streams: tuple[int, ...]) -> None:
    """Nothing that begins later was launched earlier; behind the last nothing waits."""
    t = TraceBuilder()
    with t.step(0, 1000):
        for at, stream in zip((10, 20, 30), streams, strict=True):
            t.launch(at=at, lasts=100, stream=stream)
    assert waiting_from(t) == [10, 20, 30]


def test_work_launched_earlier_may_begin_later() -> None:
    """On a stream that is busy, while another one isn't."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.launch(at=10, lasts=300, stream=7)
        t.launch(at=20, lasts=100, stream=7)
        t.launch(at=30, lasts=100, stream=8)
    assert waiting_from(t) == [10, 20, 20]


def waiting_from(t: TraceBuilder) -> list[float]:
    """In µs, for the begin of each piece of work, earliest first; later than any of them there is never any."""
    trace = t.trace()
    begins = np.sort(trace.slices.ts[trace.device_rows])
    queued = Queued(trace, DeviceWork(trace))
    (device,) = DeviceWork(trace).devices
    *since, never = queued.waiting_from(device, np.append(begins, begins[-1] + 1)).tolist()
    assert never == np.iinfo(np.int64).max
    return [(ns - trace.main_steps[0].ts) / 1e3 for ns in since]


def costs(t: TraceBuilder) -> list[tuple[int, int]]:
    """The wait and the bubble of each sync point, ns."""
    _, points = measured(t)
    return [(point.wait_ns, point.bubble_ns) for point in points]


def test_without_device_work_the_whole_call_is_the_wait() -> None:
    """Nothing tells what it waited for, and no device stood idle."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.call("cudaDeviceSynchronize", 10, 60)
    assert costs(t) == [(50_000, 0)]


def test_an_event_without_a_record_is_all_work_before_the_call() -> None:
    """The record lies before the recording, or on another thread."""
    t = TraceBuilder()
    with t.step(0, 3000):
        t.launch(at=1, lasts=100)
        t.call("cudaEventSynchronize", 20, 103)
    (point,) = measured(t)[1]
    assert point.wait_ns == (102 - 20) * 1000


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
    (point,) = measured(t)[1]
    assert point.wait_ns == (102 - 20) * 1000


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
    (point,) = measured(t)[1]
    assert point.wait_ns == (102 - 20) * 1000


def test_a_copy_of_pageable_memory_and_its_synchronize_wait_one_after_the_other() -> None:
    """The copy's call for its own µs of it, the synchronize for the rest; the copy isn't counted twice."""
    t = TraceBuilder()
    t.sync("aten::item", at=10, wait=300, copy="Memcpy DtoH (Device -> Pageable)")
    (point,) = measured(t)[1]
    assert point.wait_ns == (1 + 300) * 1000


def test_a_sync_that_awaited_nothing_has_no_part_in_the_idle_time_around_it() -> None:
    """It is behind the one that held the host, up to the next work and past the second synchronize."""
    t = TraceBuilder()
    with t.step(0, 9000):
        t.launch(at=0, lasts=400)
        t.synchronize(at=2)
        t.call("cudaDeviceSynchronize", 450, 480)
        t.launch(at=600, lasts=10)
    assert [bubble for _, bubble in costs(t)] == [(601 - 401) * 1000, 0]


def test_two_syncs_with_work_between_have_each_the_idle_time_up_to_it() -> None:
    """The second waited for work, and before that work began the device idled behind the first."""
    t = TraceBuilder()
    with t.step(0, 9000):
        for at in (10, 500):
            t.launch(at=at, lasts=300)
            t.synchronize(at=at + 2)
        t.launch(at=900, lasts=10)
    assert [bubble for _, bubble in costs(t)] == [(501 - 311) * 1000, (901 - 801) * 1000]


def test_of_syncs_one_after_the_other_the_last_is_blamed() -> None:
    """With the first gone the host would have been held by the second all the same."""
    t = TraceBuilder()
    with t.step(0, 9000):
        t.launch(at=1, lasts=500, stream=20)
        t.launch(at=5, lasts=400, stream=7)
        t.synchronize(at=10, api="cudaStreamSynchronize", stream=7)
        t.synchronize(at=420)
        t.launch(at=550, lasts=10)
    assert [bubble for _, bubble in costs(t)] == [0, (551 - 502) * 1000]


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
    matches = {c.wait_ns: c.bubble_ns for c in measured(t)[1]}
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
    assert [bubble for _, bubble in costs(t)] == [(601 - 403) * 1000, (601 - 404) * 1000]
