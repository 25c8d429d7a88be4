"""Waits that no blocking call shows are found."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan.api import analyze_trace
from syncscan.detect import detect
from syncscan.detect import further_waits as blocking
from syncscan.detect.calls import blocking_calls
from syncscan.detect.further_waits import blocking_launch
from syncscan.facts.device_work import DeviceWork
from syncscan.model.analysis import Analysis
from syncscan.model.finding import SyncPoint
from syncscan.model.trace import NONE, Trace
from tests.builder import MAIN, TraceBuilder
from tests.each import each


def row(t: TraceBuilder, start: float, end: float, name: str = "Stream Sync", pid: int = 0, **args: Any) -> None:
    """A synchronization row on a track of the device, with a correlation that no runtime call has."""
    args = {"stream": 7, "device": 0, "correlation": 77, **args}
    t.event(ph="X", cat="cuda_sync", name=name, pid=pid, tid=args.pop("tid", 7), ts=start, dur=end - start, args=args)


def unseen(t: TraceBuilder) -> tuple[Trace, list[SyncPoint]]:
    """The waits that no runtime call shows."""
    trace = t.trace()
    result = blocking_calls(trace, DeviceWork(trace))
    return trace, [call for call in result if call.api.endswith(" Sync") or call.api == "HOST_EVENT"]


def thread(t: TraceBuilder) -> str | None:
    """The thread of the one unseen wait; None without one."""
    trace, result = unseen(t)
    return trace.tracks[result[0].track].tid if result else None


def around(t: TraceBuilder) -> str:
    """The op or annotation around the one unseen wait; empty at the top."""
    trace, (call,) = unseen(t)
    return trace.name(call.around) if call.around != NONE else ""


def called(at: float = 10) -> TraceBuilder:
    """A thread that has called the runtime once."""
    t = TraceBuilder()
    t.launch("busy", at=at, lasts=900)
    return t


def test_all_facts_come_from_the_row() -> None:
    """It is measured, so it waited; and it has no copy."""
    t = called()
    row(t, 30, 903, stream=9, device=2)
    _, (call,) = unseen(t)
    assert (call.api, call.apis, call.ts, call.end) == ("Stream Sync", ("Stream Sync",), 30_000, 903_000)
    assert (call.device, call.stream, call.waited, call.copy, call.launches) == (2, 9, True, "", 0)
    assert call.synchronizes


def test_a_context_is_waited_for_as_a_whole() -> None:
    """Whatever stream the row names."""
    t = called()
    row(t, 30, 903, name="Context Sync")
    _, (call,) = unseen(t)
    assert (call.device, call.stream) == (0, NONE)


def test_without_a_device_it_is_the_first() -> None:
    """A row may not say."""
    t = called()
    row(t, 30, 903, device=-1)
    _, (call,) = unseen(t)
    assert call.device == 0


@pytest.mark.parametrize("name", ["Stream Wait Event", "GPU_BARRIER_EXECUTION", "GPU_BARRIER_MEMORY"])
def test_the_devices_own_waits_are_none(name: str) -> None:
    """They order streams; the host goes on."""
    t = called()
    row(t, 30, 903, name=name)
    trace = t.trace()
    assert blocking_calls(trace, DeviceWork(trace)) == []


@pytest.mark.parametrize(("until", "new"), [(130, 0), (129.999, 1)])
def test_a_row_that_a_call_covers_by_half_is_the_same_wait(until: float, new: int) -> None:
    """The two clocks differ a little; half of the row, exactly, is enough."""
    t = called()
    t.call("cudaStreamSynchronize", 20, until)
    row(t, 30, 230)
    assert len(unseen(t)[1]) == new


@pytest.mark.parametrize(("start", "new"), [(130, 0), (130.001, 1)])
def test_the_call_may_also_begin_within_the_row(start: float, new: int) -> None:
    """Its other half."""
    t = called()
    with t.thread("other"):
        t.call("cudaStreamSynchronize", start, 300)
    row(t, 30, 230)
    assert len(unseen(t)[1]) == new


def test_a_row_of_no_length_is_new_unless_a_call_contains_it() -> None:
    """Nothing is no half of it."""
    t = called()
    t.call("cudaStreamSynchronize", 20, 25)
    row(t, 30, 30)
    assert len(unseen(t)[1]) == 1


def test_a_row_of_a_runtime_call_is_that_call() -> None:
    """Also where the times don't fit, and the call isn't known to wait."""
    t = called()
    t.call("cudaGetDeviceProperties", 20, 25)
    row(t, 300, 500, correlation=t.events[-1]["args"]["correlation"])
    assert unseen(t)[1] == []


def test_the_thread_that_called_the_runtime_last_waited() -> None:
    """With two threads; a thread without ops and calls can't have waited."""
    t = called(10)
    with t.thread("later", tid=200):
        t.launch("busy", at=20, lasts=5)
    row(t, 30, 500)
    assert thread(t) == "200"


def test_a_thread_that_calls_nothing_but_the_driver_can_wait() -> None:
    """Triton's and other extensions' launches go past the runtime."""
    t = called(10)
    with t.thread("later", tid=200):
        t.call("cuLaunchKernel", 20, 21)
    t.events[-1]["cat"] = "cuda_driver"
    row(t, 30, 500)
    assert thread(t) == "200"


def test_of_a_threads_calls_the_last_counts() -> None:
    """Not the first, nor how many."""
    t = called(5)
    t.call("cudaEventRecord", 20, 21)
    with t.thread("between", tid=200):
        t.launch("busy", at=10, lasts=5)
    row(t, 30, 500)
    assert thread(t) == str(MAIN)


@pytest.mark.parametrize(("again", "waited"), [(500, "200"), (499.999, str(MAIN))])
def test_a_thread_that_calls_meanwhile_didnt_wait(again: float, waited: str) -> None:
    """It may call again after the row's end."""
    t = called(10)
    with t.thread("later", tid=200):
        t.launch("busy", at=20, lasts=5)
        t.call("cudaEventRecord", again, again + 1)
    row(t, 30, 500)
    assert thread(t) == waited


@pytest.mark.parametrize(("at", "waited"), [(30, str(MAIN)), (30.001, None)])
def test_a_thread_has_called_by_the_rows_start(at: float, waited: str | None) -> None:
    """Together with it is early enough; who called only later can't be waiting."""
    t = called(at)
    row(t, 30, 500)
    assert thread(t) == waited


def test_without_any_host_thread_there_is_no_wait() -> None:
    """A trace of the device alone."""
    t = TraceBuilder()
    t._work("kernel", "gemm", 1, 100, 7, 0)
    row(t, 30, 500)
    assert thread(t) is None


def test_on_intel_the_rows_tid_names_the_thread() -> None:
    """Also where another thread called later."""
    t = called(10)
    with t.thread("later", tid=200):
        t.launch("busy", at=20, lasts=5)
    row(t, 30, 500, name="HOST_EVENT", pid=-1, tid=MAIN)
    assert thread(t) == str(MAIN)


def test_on_intel_an_unknown_tid_is_no_thread() -> None:
    """It isn't given to another one."""
    t = called(10)
    row(t, 30, 500, name="HOST_EVENT", pid=-1, tid=4242)
    assert thread(t) is None


@pytest.mark.parametrize(("end", "op"), [(500, "inner"), (499.999, "outer")])
def test_the_innermost_op_that_holds_the_row_is_around_it(end: float, op: str) -> None:
    """Up to its end, exactly; an op that ended before is none, nor is one that begins later."""
    t = TraceBuilder()
    t.op("outer", 1, 900)
    t.op("inner", 5, end)
    t.call("cudaEventQuery", 8, 9)
    t.op("done", 20, 25)
    t.op("later", 600, 700)
    row(t, 30, 500)
    assert around(t) == op


def test_an_annotation_can_be_around_it_and_a_call_cant() -> None:
    """A runtime call that goes on meanwhile belongs to something else."""
    t = TraceBuilder()
    t.scope("scope", 1, 900)
    t.call("cudaGetDeviceProperties", 5, 600)
    row(t, 30, 500)
    assert around(t) == "scope"


@pytest.mark.parametrize(("start", "op"), [(30, "aten::op"), (30.001, "")])
def test_an_op_has_begun_by_the_rows_start(start: float, op: str) -> None:
    """Together with it is early enough; at the top nothing is around it."""
    t = TraceBuilder()
    t.call("cudaEventQuery", 8, 9)
    t.op("aten::op", start, 900)
    row(t, 30, 500)
    assert around(t) == op


def test_the_ops_of_another_thread_arent_around_it() -> None:
    """The last slice before it on the waiting thread is where the search begins."""
    t = TraceBuilder()
    with t.thread("before", tid=MAIN - 1):
        t.op("foreign", 1, 900)
    t.call("cudaEventQuery", 8, 9)
    row(t, 30, 500)
    assert around(t) == ""


def test_the_op_may_be_the_first_slice_of_its_thread() -> None:
    """On Intel no runtime call need be there."""
    t = TraceBuilder()
    t.op("aten::item", 20, 900)
    row(t, 30, 500, name="HOST_EVENT", pid=-1, tid=MAIN)
    assert around(t) == "aten::item"


def test_nothing_may_have_begun_yet() -> None:
    """Then nothing is around it, whatever lies on the thread before in the trace's order."""
    t = TraceBuilder()
    with t.thread("before", tid=MAIN - 1):
        t.op("foreign", 1, 900)
    t.op("aten::item", 600, 900)
    row(t, 30, 500, name="HOST_EVENT", pid=-1, tid=MAIN)
    assert around(t) == ""


def polled(
    api: str = "cudaEventQuery", every: float = 40, until: float = 2450, vendor: str = "cuda", op: str = ""
) -> TraceBuilder:
    """Two steps of 3 ms, each with 2 ms of work that the host asks about so often, until a time of the step."""
    t = TraceBuilder(vendor)
    for start in t.steps(2, lasts=3000):
        done = t.launch("busy", at=start + 10, lasts=1900) - start
        t.call("cudaEventRecord", start + 20, start + 22)
        if op:
            t.op(op, start + 24, start + 2990)
        at = 30.0
        while at < min(done + every, until):
            t.call(api, start + at, start + at + 2)
            at += every
        t.launch("next", at=start + 2500, lasts=100)
    return t


def points(t: TraceBuilder) -> list[SyncPoint]:
    result, warnings = detect(t.trace())
    assert warnings == ()
    return [point for point in result if not point.diagnosis.intended]


@pytest.mark.parametrize("every", [5, 40, 500])
@each(
    ("api", "vendor", "target"),
    [
        ("cudaEventQuery", "cuda", "an event"),
        ("cudaStreamQuery", "cuda", "a stream"),
        ("hipEventQuery", "rocm", "event"),
    ],
)
def test_a_loop_of_queries_is_one_wait(api: str, vendor: str, target: str, every: float) -> None:
    """It goes from the first query to the last, and waits until the work is done."""
    first, second = points(polled(api, every, vendor=vendor))
    assert first.diagnosis.rule == second.diagnosis.rule == "polling"
    assert target in first.diagnosis.title
    assert first.ts == 30_000
    assert first.awaited is not None
    assert first.awaited.done == 1_911_000
    assert first.awaited.done <= first.end <= first.awaited.done + every * 1000 + 2000


def analyzed(t: TraceBuilder) -> Analysis:
    return analyze_trace(t.trace())


def test_it_costs_what_it_held_the_host() -> None:
    """The cost spans the first query until the work was done, with all of Python's work between the queries."""
    (finding,) = analyzed(polled()).findings
    assert finding.wait_us == 1911 - 30
    assert 0 < finding.bubble_us <= 2501 - 1911


def test_the_hosts_time_in_it_is_waiting() -> None:
    """It is neither queries nor Python."""
    counted = analyzed(polled()).host_time.counted
    assert counted is not None
    assert counted.waits_us == 1911 - 30
    assert counted.queries_us < 50


def test_the_step_without_it_is_as_long_as_its_work_or_its_host() -> None:
    """A replay that leaves the loop out launches what is behind it at once."""
    analysis = analyzed(polled())
    projection = analysis.whatif("all")
    assert projection.predicted_us == pytest.approx(2000, rel=0.1)
    assert projection.baseline_us == pytest.approx(3000, rel=0.05)


@pytest.mark.parametrize(
    "t",
    [
        polled(until=100),
        polled(op="aten::empty"),
        polled(every=5000),
    ],
    ids=["given up before the work is done", "in an op, as the allocator's", "asked once per step"],
)
def test_queries_that_do_not_wait_are_none(t: TraceBuilder) -> None:
    """Nothing was done when they ended, or torch itself asks."""
    assert points(t) == []


def test_a_query_between_launches_does_not_wait() -> None:
    """The program goes on meanwhile."""
    t = TraceBuilder()
    with t.step(0, 3000):
        t.launch("busy", at=10, lasts=1900)
        for at in range(30, 2000, 40):
            t.call("cudaEventQuery", at, at + 2)
            t.launch("small", at=at + 5, lasts=20, stream=9)
    assert points(t) == []


def test_a_watchdogs_thread_holds_nobody_up() -> None:
    """NCCL asks for its collectives on a thread that launches nothing."""
    t = TraceBuilder()
    with t.step(0, 3000):
        t.launch("busy", at=10, lasts=1900)
        with t.thread("pt_nccl_watchdg"):
            for at in range(30, 2000, 40):
                t.call("cudaEventQuery", at, at + 2)
    assert points(t) == []


def test_recording_its_queries_takes_none_of_the_hosts_own_time() -> None:
    """The host waits meanwhile, so the profiler's estimated overhead is the same for many queries as for few."""
    many, few = (analyzed(polled(every=every)).step.guessed_overhead for every in (5, 400))
    assert many == pytest.approx(few, rel=0.2)


def launches(t: TraceBuilder, count: int, *, held: bool, start: float = 0, api: str = "cudaLaunchKernel") -> None:
    """Launches of kernels that last 50 µs, and end before or long after their call returns."""
    for k in range(count):
        at = start + 200 * k
        t.call(api, at, at + (100 if held else 10))
        t._work("kernel", "gemm", at + 20, 50, 7, 0)


def one(launch: tuple[float, float], kernel: tuple[float, float]) -> int | None:
    """How many launches are held of 19 that are, and one more with these times."""
    t = TraceBuilder()
    t.call("cudaLaunchKernel", *launch)
    t.event(
        ph="X",
        cat="kernel",
        name="gemm",
        pid=0,
        tid=7,
        ts=kernel[0],
        dur=kernel[1] - kernel[0],
        args={"device": 0, "stream": 7, "correlation": t.events[-1]["args"]["correlation"]},
    )
    launches(t, 19, held=True, start=1000)
    result = blocking_launch(t.trace())
    return result[1] if result else None


@pytest.mark.parametrize(("count", "expected"), [(19, False), (20, True)])
def test_a_few_launches_prove_nothing(count: int, expected: bool) -> None:
    """Twenty are enough."""
    t = TraceBuilder()
    launches(t, count, held=True)
    assert (blocking_launch(t.trace()) is not None) == expected


@pytest.mark.parametrize(("free", "held"), [(2, 18), (3, None)])
def test_nearly_all_launches_have_to_be_held(free: int, held: int | None) -> None:
    """Nine of ten, exactly, still count; those that aren't held are no part of the answer."""
    t = TraceBuilder()
    launches(t, 20 - free, held=True)
    launches(t, free, held=False, start=10_000)
    launch = blocking_launch(t.trace())
    assert (launch[1] if launch else None) == held


@pytest.mark.parametrize(("late", "held"), [(1.0, 20), (1.001, 19)])
def test_a_kernel_may_seem_to_outlast_its_launch_by_a_microsecond(late: float, held: int) -> None:
    """Old traces have whole µs."""
    assert one((100, 200), (110, 200 + late)) == held


@pytest.mark.parametrize(("early", "held"), [(1.0, 20), (1.001, 19)])
def test_a_kernel_may_seem_to_start_a_microsecond_before_its_launch(early: float, held: int) -> None:
    """Earlier, and the two don't belong together."""
    assert one((100, 200), (100 - early, 150)) == held


def test_graphs_dont_count() -> None:
    """All kernels of a graph share its launch, which may well outlast the first of them."""
    t = TraceBuilder()
    launches(t, 40, held=True, api="cudaGraphLaunch")
    assert blocking_launch(t.trace()) is None
    launches(t, 20, held=True, start=100_000)
    launch = blocking_launch(t.trace())
    assert launch is not None
    assert launch[1] == 20


def test_kernels_without_a_launch_dont_count() -> None:
    """They were launched before recording began, or their call was lost."""
    t = TraceBuilder()
    launches(t, 20, held=True)
    for k in range(20):
        t._work("kernel", "gemm", 50_000 + 100 * k, 50, 7, 0)
        t.events[-1]["args"]["correlation"] = 900_000 + k
    launch = blocking_launch(t.trace())
    assert launch is not None
    assert launch[1] == 20


def test_the_longest_of_the_blocking_launches_stands_for_all() -> None:
    """A longer one that isn't held was waiting for a place in the queue."""
    t = TraceBuilder()
    launches(t, 20, held=True)
    t.call("cudaLaunchKernel", 20_000, 20_150)
    t._work("kernel", "long", 20_010, 100, 7, 0)
    t.call("cudaLaunchKernel", 30_000, 30_900)
    t._work("kernel", "behind", 30_500, 5000, 7, 0)
    trace = t.trace()
    launch = blocking_launch(trace)
    assert launch is not None
    row, count = launch
    assert (int(trace.slices.ts[row]), int(trace.slices.dur[row]), count) == (20_000_000, 150_000, 21)


def test_a_trace_without_kernels_has_none() -> None:
    """Not an error."""
    assert blocking_launch(TraceBuilder().trace()) is None


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.sampled_from((1, 5, 100)))
def test_a_part_of_the_kernels_says_no_more_than_all(held: list[bool], some: int) -> None:
    """Which launches are looked at first, and how many, is nothing to the answer."""
    t = TraceBuilder()
    for k, one in enumerate(held):
        launches(t, 1, held=one, start=1000 * k)
    with pytest.MonkeyPatch.context() as m:
        m.setattr(blocking, "_SOME", some)
        launch = blocking_launch(t.trace())
    enough = len(held) >= 20 and sum(held) >= 0.9 * len(held)
    assert (launch[1] if launch else None) == (sum(held) if enough else None)
