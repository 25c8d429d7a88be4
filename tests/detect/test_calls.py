"""Which calls count as waits, and which that look like them don't: over vendors, versions and incomplete traces."""

from __future__ import annotations

import pytest

from syncscan.detect import detect
from syncscan.detect.calls import blocking_calls
from syncscan.facts.device_work import DeviceWork
from syncscan.model.finding import Cause, SyncPoint
from syncscan.model.runtime_calls import api_name
from syncscan.model.trace import NONE
from tests.builder import MAIN, TraceBuilder
from tests.each import each

ITEM = "aten::item > aten::_local_scalar_dense"


def found(t: TraceBuilder) -> list[SyncPoint]:
    """The sync points above information."""
    points, warnings = detect(t.trace())
    assert warnings == ()
    return [p for p in points if not p.diagnosis.intended]


def apis(t: TraceBuilder) -> list[str]:
    return [p.api for p in found(t)]


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("cudaStreamSynchronize_ptsz", "cudaStreamSynchronize"),
        ("cudaStreamSynchronize_v3020", "cudaStreamSynchronize"),
        ("cudaMemcpyAsync_v3020_ptsz", "cudaMemcpyAsync"),
        ("hipMemcpyWithStream", "hipMemcpyWithStream"),
    ],
)
def test_version_suffixes_dont_matter(name: str, bare: str) -> None:
    """A call has another name where streams are per thread or the API is versioned."""
    assert api_name(name) == bare


@each(
    "api",
    [
        "cudaDeviceSynchronize",
        "cudaStreamSynchronize_ptsz",
        "cudaEventSynchronize",
        "cuStreamSynchronize",
        "cuCtxSynchronize",
        "hipDeviceSynchronize",
        "hipStreamSynchronize",
        "hipEventSynchronize",
        "zeCommandListHostSynchronize",
        "zeEventHostSynchronize",
        "zeCommandQueueSynchronize",
        "urQueueFinish",
        "urEventWait",
        "mtiaDeviceSynchronize",
    ],
)
def test_synchronizes_of_every_vendor_are_waits(api: str) -> None:
    """A synchronize is a finding also when it happened not to wait."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.call(api, 100, 200)
    assert apis(t) == [api_name(api)]


@each(
    "api",
    [
        "cudaStreamWaitEvent",
        "cudaEventRecord",
        "cudaEventQuery",
        "cudaStreamQuery",
        "cudaStreamIsCapturing",
        "cudaEventElapsedTime",
        "cudaMemGetInfo",
        "hipStreamWaitEvent",
        "urEnqueueEventsWaitWithBarrier",
        "cudaGetDeviceProperties",
        "cudaLaunchKernel",
    ],
)
def test_calls_that_queue_or_ask_are_none(api: str) -> None:
    """They return at once, or order the device and not the host."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.call(api, 100, 900)
    assert apis(t) == []


def test_a_copy_and_the_synchronize_behind_it_are_one() -> None:
    """One wait, whichever of the two calls shows it; its api is the longer of them."""
    t = TraceBuilder()
    with t.step(0, 2000):
        t.launch("busy", at=1, lasts=500)
        t.sync(ITEM, at=20)
    (point,) = found(t)
    assert (point.api, len(point.calls)) == ("cudaStreamSynchronize", 2)


def test_old_versions_wait_in_the_copy() -> None:
    """Before torch 2.3 `.item()` copied to pageable memory and waited there; the synchronize behind is short."""
    t = TraceBuilder()
    with t.step(0, 2000):
        t.launch("busy", at=1, lasts=500)
        for op in ("aten::item", "aten::_local_scalar_dense"):
            t.op(op, 20, 900)
        t.copy("Memcpy DtoH (Device -> Pageable)", at=30, blocks=True)
        t.call("cudaStreamSynchronize", 700, 703)
    (point,) = found(t)
    assert (point.api, point.diagnosis.rule) == ("cudaMemcpyAsync", "item")


def test_a_synchronous_copy_is_a_wait_unless_it_stays_on_the_device() -> None:
    """`cudaMemcpy` waits in both directions of the host, not from device to device (NVIDIA's API description)."""
    t = TraceBuilder()
    with t.step(0, 2000):
        for at, name in ((10, "Memcpy DtoH (Device -> Pageable)"), (200, "Memcpy DtoD (Device -> Device)")):
            t.copy(name, at=at)
            t.events[-2]["name"] = "cudaMemcpy"
    assert [p.diagnosis.cause for p in found(t)] == [Cause.READBACK]


def test_a_pageable_copy_to_the_device_counts_only_if_it_held_the_host() -> None:
    """Small ones with `non_blocking=True` are staged and return at once (measured on an H200)."""
    t = TraceBuilder()
    with t.step(0, 5000):
        t.launch("busy", at=1, lasts=1000)
        with t.op("aten::copy_", 10, 30):
            t.copy("Memcpy HtoD (Pageable -> Device)", at=12)
        with t.op("aten::copy_", 100, 1500):
            t.copy("Memcpy HtoD (Pageable -> Device)", at=110, lasts=20, blocks=True)
    assert [p.ts for p in found(t)] == [110_000]


def test_a_pinned_copy_is_none_even_when_the_queue_is_full() -> None:
    """Back-pressure: the host is ahead, and waits for a place in the queue."""
    t = TraceBuilder()
    with t.step(0, 5000):
        t.launch("busy", at=1, lasts=1000)
        with t.op("aten::copy_", 10, 1100):
            t.copy("Memcpy HtoD (Pinned -> Device)", at=12, blocks=True)
    assert apis(t) == []


def test_a_rocm_copy_counts_if_it_held_the_host() -> None:
    """HIP traces don't tell pinned from pageable memory, so what was measured decides."""
    t = TraceBuilder("rocm")
    with t.step(0, 5000):
        t.launch("busy", at=1, lasts=1000)
        t.copy("Memcpy HtoD (Host -> Device)", at=10)
        t.copy("Memcpy HtoD (Host -> Device)", at=40, blocks=True)
        t.events[-2]["name"] = "hipMemcpyAsync"
    assert [p.ts for p in found(t)] == [40_000]


def test_intels_names_of_directions_are_understood() -> None:
    """A copy to the host is called `D2M` there; the wait behind it is a queue's or an event's."""
    t = TraceBuilder()
    with t.step(0, 5000):
        t.launch("busy", at=1, lasts=1000)
        for op in ("aten::to", "aten::_to_copy", "aten::copy_"):
            t.op(op, 10, 1200)
        t.copy("Memcpy D2M(Device -> Memory)", at=20)
        t.events[-2]["name"] = "urEnqueueUSMMemcpy"
        t.call("urEventWait", 30, 1100)
    assert {p.diagnosis.cause for p in found(t)} == {Cause.READBACK}


def test_an_item_without_a_runtime_call_is_a_cpu_tensor() -> None:
    """The most common false alarm: Adam's step counter, masks by Python value."""
    t = TraceBuilder()
    with t.step(0, 1000), t.op("aten::item", 10, 20):
        t.op("aten::_local_scalar_dense", 12, 18)
    assert apis(t) == []


def test_long_launches_are_back_pressure() -> None:
    """A launch that waits for a place in a full queue ends long before its kernel."""
    t = TraceBuilder()
    with t.step(0, 60_000):
        for k in range(30):
            t.call("cudaLaunchKernel", 10 + 1000 * k, 900 + 1000 * k)
            t._work("kernel", "gemm", 900 + 1000 * k, 1000, 7, 0)
    assert apis(t) == []


def test_launch_blocking_is_one_finding() -> None:
    """Where every launch waits for its kernel, one finding says so for all."""
    t = TraceBuilder()
    with t.step(0, 60_000):
        for k in range(30):
            t.call("cudaLaunchKernel", 10 + 1000 * k, 900 + 1000 * k + k)
            t._work("kernel", "gemm", 50 + 1000 * k, 800, 7, 0)
    (point,) = found(t)
    assert (point.diagnosis.rule, point.diagnosis.cause) == ("launch-blocking", Cause.DEBUG)
    assert "30 launches" in point.diagnosis.title


def test_short_traces_claim_no_launch_blocking() -> None:
    """A few tiny kernels that end within their launch prove nothing."""
    t = TraceBuilder()
    with t.step(0, 60_000):
        for k in range(5):
            t.call("cudaLaunchKernel", 10 + 1000 * k, 900 + 1000 * k)
            t._work("kernel", "gemm", 50 + 1000 * k, 800, 7, 0)
    assert apis(t) == []


def test_the_profilers_own_synchronize_is_left_out() -> None:
    """torch.profiler synchronizes the device when it stops: outside of steps, last, with no launch after it."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.launch("busy", at=1, lasts=500)
        t.synchronize(at=10)
    t.synchronize(at=1100)
    points, _ = detect(t.trace())
    assert [p.ts for p in points] == [10_000]


def test_without_steps_only_the_last_is_the_profilers() -> None:
    """A program's own synchronize before it stays a finding."""
    t = TraceBuilder()
    t.launch("busy", at=1, lasts=500)
    t.synchronize(at=10)
    t.synchronize(at=1100)
    assert [p.ts for p in found(t)] == [10_000]


def test_with_stacks_the_profilers_frame_tells() -> None:
    """A last synchronize under the program's own frame is the program's."""
    t = TraceBuilder(with_stack=1)
    t.launch("busy", at=1, lasts=500)
    t.frame("train.py(3): main", 5, 900)
    t.frame("torch/cuda/__init__.py(9): synchronize", 8, 800)
    t.synchronize(at=10)
    assert [p.ts for p in found(t)] == [10_000]


def test_waits_outside_of_steps_are_for_information() -> None:
    """Warm-up and what follows the last step cost no step anything."""
    t = TraceBuilder()
    t.sync(ITEM, at=10, wait=50)
    with t.step(1000, 2000):
        t.launch("busy", at=1001, lasts=50)
    t.sync(ITEM, at=3000, wait=50)
    points, _ = detect(t.trace())
    assert [p.diagnosis.intended for p in points] == [True, True]


@pytest.mark.parametrize("name", ["pt_data_pin", "pt_nccl_watchdg", "python"])
def test_threads_without_ops_hold_nobody_up(name: str) -> None:
    """Pinning, NCCL's watchdog and a user's helper thread wait for themselves."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.launch("busy", at=1, lasts=500)
        t.op("aten::mm", 20, 30)
        with t.thread(name):
            t.synchronize(at=10)
    points, _ = detect(t.trace())
    assert [p.diagnosis.intended for p in points] == [True]


def test_without_ops_a_thread_that_only_waits_holds_nobody_up() -> None:
    """It gives the device nothing, so nothing comes late; the thread that launches is the program's."""
    t = TraceBuilder()
    t.launch("busy", at=1, lasts=500)
    t.synchronize(at=10)
    with t.thread("watchdog"):
        t.call("cudaEventSynchronize", 20, 600)
    t.launch("next", at=700, lasts=5)
    points, _ = detect(t.trace())
    assert [(p.api, p.diagnosis.intended) for p in points] == [
        ("cudaDeviceSynchronize", False),
        ("cudaEventSynchronize", True),
    ]


def test_runtime_calls_alone_are_enough() -> None:
    """A trace without ops, scopes, steps and device rows still shows its synchronizes."""
    t = TraceBuilder()
    t.call("cudaMemcpyAsync", 10, 14)
    t.call("cudaStreamSynchronize", 15, 300)
    t.call("cudaEventSynchronize", 400, 500)
    t.call("cudaLaunchKernel", 600, 605)
    assert apis(t) == ["cudaStreamSynchronize", "cudaEventSynchronize"]


def test_calls_on_tracks_of_their_own_are_led_to_their_ops() -> None:
    """Early writers put ops and runtime calls of one thread on different rows; `External id` joins them."""
    t = TraceBuilder()
    with t.step(0, 2000):
        t.launch("busy", at=1, lasts=500)
        t.sync("aten::nonzero", at=20)
    op = next(e for e in t.events if e["name"] == "aten::nonzero")
    for event in t.events:
        if event.get("cat") == "cuda_runtime":
            event["tid"] = 4242
            event["args"]["External id"] = op["args"]["External id"]
    assert [p.diagnosis.rule for p in found(t)] == ["nonzero"]


def test_missing_device_rows_leave_the_cause() -> None:
    """Where the profiler lost the device's side, the ops still name the wait."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.sync("aten::nonzero", at=20, wait=100)
    t.events = [e for e in t.events if e.get("cat") not in ("kernel", "gpu_memcpy")]
    assert [p.diagnosis.rule for p in found(t)] == ["nonzero"]


def sync_row(t: TraceBuilder, name: str, start: float, end: float, correlation: int, stream: int = 7) -> None:
    """A `cuda_sync` row as torch writes it: on the stream's own track."""
    args = {"cuda_sync_kind": name, "stream": stream, "correlation": correlation, "device": 0, "context": 1}
    t.event(ph="X", cat="cuda_sync", name=name, pid=0, tid=stream, ts=start, dur=end - start, args=args)


def test_a_wait_that_only_a_sync_row_shows_is_found() -> None:
    """Driver-level synchronizes of extensions have no runtime row; they lie in the op that was open then."""
    t = TraceBuilder()
    with t.step(0, 2000):
        t.launch("busy", at=1, lasts=900)
        t.op("mylib::solve", 20, 1000)
        t.call("cudaEventQuery", 22, 23)
    sync_row(t, "Stream Sync", 30, 903, correlation=77)
    sync_row(t, "Stream Wait Event", 1100, 1101, correlation=78)
    (point,) = found(t)
    trace = t.trace()
    assert [trace.name(r) for r in point.ops] == ["mylib::solve"]
    assert (point.api, trace.tracks[point.track].tid) == ("Stream Sync", str(MAIN))
    assert (point.ts, point.end, point.stream) == (30_000, 903_000, 7)


def test_a_sync_row_of_a_runtime_call_adds_nothing() -> None:
    """A wait isn't counted twice, by correlation or by time."""
    t = TraceBuilder()
    with t.step(0, 2000):
        t.launch("busy", at=1, lasts=900)
        t.call("cudaStreamSynchronize", 30, 905)
    number = t.events[-1]["args"]["correlation"]
    sync_row(t, "Stream Sync", 31, 904, correlation=number)
    sync_row(t, "Stream Sync", 31, 904, correlation=9999)
    assert len(found(t)) == 1


def test_an_xpu_wait_on_its_own_row_goes_to_the_thread_its_tid_names() -> None:
    """Intel's synchronization rows have pid -1 and the host thread's tid."""
    t = TraceBuilder()
    with t.step(0, 2000):
        t.launch("busy", at=1, lasts=900)
        t.op("aten::item", 20, 1000)
    t.event(ph="X", cat="xpu_sync", name="HOST_EVENT", pid=-1, tid=MAIN, ts=30, dur=870, args={"correlation": 5})
    t.event(
        ph="X", cat="xpu_sync", name="GPU_BARRIER_EXECUTION", pid=-1, tid=MAIN, ts=1100, dur=5, args={"correlation": 6}
    )
    (point,) = found(t)
    assert [t.trace().name(r) for r in point.ops] == ["aten::item"]


def test_a_call_inside_another_is_the_same_wait() -> None:
    """A runtime call and the driver call below it."""
    t = TraceBuilder()
    with t.step(0, 2000):
        t.launch("busy", at=1, lasts=500)
        t.call("urQueueFinish", 10, 510)
        t.call("zeCommandListHostSynchronize", 12, 508)
    assert apis(t) == ["urQueueFinish"]


def test_any_other_call_counts_if_the_host_was_held_until_the_device_had_drained() -> None:
    """Nobody has a list of all calls that can wait; what was measured decides."""
    t = TraceBuilder()
    with t.step(0, 5000):
        t.launch("busy", at=1, lasts=1000)
        t.call("cudaFreeArray", 100, 1010)
        t.launch("busy", at=2000, lasts=1000)
        t.call("cudaGetDeviceProperties", 2100, 2300)
        t.call("cudaHostRegister", 2310, 4200)
        t.launch("busy", at=4300, lasts=100)
        t.call("cudaStreamEndCapture", 4310, 4420)
    assert apis(t) == ["cudaFreeArray"]


def test_an_unknown_call_around_a_synchronize_doesnt_hide_it() -> None:
    """Vendors' own runtimes wrap their synchronizes in longer calls."""
    t = TraceBuilder()
    with t.step(0, 5000):
        t.launch("busy", at=1, lasts=1000)
        t.call("runFunction - wait_for_results", 100, 1100)
        t.call("mtiaStreamSynchronize", 110, 1010)
    assert apis(t) == ["mtiaStreamSynchronize"]


def blocking(t: TraceBuilder) -> list[SyncPoint]:
    """All that can hold the host, whether it did or not."""
    trace = t.trace()
    return blocking_calls(trace, DeviceWork(trace))


def rename(t: TraceBuilder, name: str) -> None:
    """Give the call of the copy that was added last another name."""
    t.events[-2]["name"] = name


PAGEABLE_D2H, PINNED_D2H = "Memcpy DtoH (Device -> Pageable)", "Memcpy DtoH (Device -> Pinned)"
PAGEABLE_H2D, PINNED_H2D = "Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pinned -> Device)"


@each(
    ("api", "copy", "idle", "busy"),
    [
        ("cudaMemcpyAsync", PAGEABLE_D2H, True, True),
        ("cudaMemcpyAsync", PINNED_D2H, False, False),
        ("cudaMemcpyAsync", PAGEABLE_H2D, False, True),
        ("cudaMemcpyAsync", PINNED_H2D, False, False),
        ("cudaMemcpyAsync", "Memcpy DtoD (Device -> Device)", False, False),
        ("cudaMemcpyAsync", "Memcpy PtoP (Device -> Device)", False, False),
        ("hipMemcpyAsync", "Memcpy DtoH", False, True),
        ("hipMemcpyAsync", "Memcpy HtoD", False, True),
        ("cudaMemcpy", PAGEABLE_D2H, True, True),
        ("cudaMemcpy", PINNED_H2D, True, True),
        ("cudaMemcpy", "Memcpy DtoD (Device -> Device)", False, False),
        ("hipMemcpyWithStream", "Memcpy PtoP (Device -> Device)", False, False),
        ("urEnqueueUSMMemcpy", "Memcpy D2M(Device -> Memory)", False, True),
        ("urEnqueueUSMMemcpy", "Memcpy D2D(Device -> Device)", False, False),
    ],
)
def test_which_copies_can_hold_the_host(api: str, copy: str, idle: bool, busy: bool) -> None:
    """By definition, by their kind of memory, or because they were measured to wait for the work before them."""
    for work, expected in ((0, idle), (5000, busy)):
        t = TraceBuilder()
        if work:
            t.launch("busy", at=1, lasts=work)
        t.copy(copy, at=10, lasts=50, blocks=True)
        rename(t, api)
        assert [call.copy for call in blocking(t)] == ([copy] if expected else [])


@pytest.mark.parametrize("api", ["cudaFree", "hipFree", "cudaMalloc", "cudaHostAlloc", "cuMemMap"])
def test_allocators_are_candidates_however_short(api: str) -> None:
    """The rules decide what they mean."""
    t = TraceBuilder()
    t.call(api, 10, 11)
    assert [call.api for call in blocking(t)] == [api]


@pytest.mark.parametrize(("lasts", "seen"), [(100, True), (99.999, False)])
def test_a_call_of_unknown_name_is_looked_at_from_a_length_on(lasts: float, seen: bool) -> None:
    """The length is 100 µs; shorter calls are most likely slow by themselves."""
    t = TraceBuilder()
    t.launch("busy", at=1, lasts=1000)
    t.call("cudaFreeArray", 1010 - lasts, 1010)
    assert bool(blocking(t)) == seen


@pytest.mark.parametrize(("gap", "calls"), [(19.999, 1), (20, 2)])
def test_without_an_op_a_copy_and_a_synchronize_belong_together_if_they_are_close(gap: float, calls: int) -> None:
    """In Python 20 µs go by between two statements; a scope or another call around them doesn't join them."""
    for around in (None, "scope"):
        t = TraceBuilder()
        if around:
            t.scope(around, 1, 900)
        t.copy(PAGEABLE_D2H, at=10)
        t.call("cudaStreamSynchronize", 11 + gap, 500)
        assert len(blocking(t)) == calls


def test_in_an_op_they_belong_together_however_far_apart() -> None:
    """An op makes no other use of the two."""
    t = TraceBuilder()
    with t.op("aten::copy_", 1, 900):
        t.copy(PAGEABLE_D2H, at=10)
        t.call("cudaStreamSynchronize", 400, 500)
    assert [call.apis for call in blocking(t)] == [("cudaMemcpyAsync", "cudaStreamSynchronize")]


def test_in_two_ops_they_dont_belong_together() -> None:
    """The second op's synchronize is its own, also when it is inside of the copy's."""
    t = TraceBuilder()
    with t.op("aten::outer", 1, 900):
        t.copy(PAGEABLE_D2H, at=10)
        with t.op("aten::inner", 12, 600):
            t.call("cudaStreamSynchronize", 13, 500)
    assert [len(call.calls) for call in blocking(t)] == [1, 1]


def test_on_two_threads_they_dont_belong_together() -> None:
    """Although the one is the next call of the trace's list after the other."""
    t = TraceBuilder()
    t.copy(PAGEABLE_D2H, at=10)
    with t.thread("other"):
        t.call("cudaStreamSynchronize", 12, 500)
    assert [len(call.calls) for call in blocking(t)] == [1, 1]


def test_a_copy_that_stays_on_the_device_needs_no_synchronize() -> None:
    """The one behind it is another wait."""
    t = TraceBuilder()
    with t.op("aten::copy_", 1, 900):
        t.copy("Memcpy DtoD (Device -> Device)", at=10)
        t.call("cudaStreamSynchronize", 12, 500)
    assert [call.apis for call in blocking(t)] == [("cudaStreamSynchronize",)]


@pytest.mark.parametrize(
    ("between", "joined"),
    [
        ([], True),
        (["cudaStreamIsCapturing"], True),
        (["cudaEventQuery", "cudaPointerGetAttributes"], True),
        (["cudaEventQuery", "cudaEventQuery", "cudaEventQuery"], False),
        (["cudaLaunchKernel"], False),
        (["cudaEventQuery", "cudaEventRecord"], False),
    ],
)
def test_up_to_two_queries_may_come_between_the_two(between: list[str], joined: bool) -> None:
    """Anything else is the next thing that the op does."""
    t = TraceBuilder()
    with t.op("aten::copy_", 1, 900):
        t.copy(PAGEABLE_D2H, at=10)
        for k, name in enumerate(between):
            t.call(name, 12 + k, 12.5 + k)
        t.call("cudaStreamSynchronize", 20, 500)
    assert [len(call.calls) for call in blocking(t)] == ([2] if joined else [1, 1])


def test_only_a_copy_is_completed_by_a_synchronize() -> None:
    """Two synchronizes in a row are two waits, and memory given back is a third."""
    t = TraceBuilder()
    with t.op("aten::op", 1, 900):
        t.call("cudaStreamSynchronize", 10, 20)
        t.call("cudaStreamSynchronize", 21, 30)
        t.call("cudaFree", 31, 40)
        t.call("cudaStreamSynchronize", 41, 50)
    assert [len(call.calls) for call in blocking(t)] == [1, 1, 1, 1]


def test_a_copy_may_be_the_last_call() -> None:
    """Nothing follows it on any thread."""
    t = TraceBuilder()
    t.copy(PAGEABLE_D2H, at=10)
    assert [call.apis for call in blocking(t)] == [("cudaMemcpyAsync",)]


def test_the_facts_of_a_pair_span_both() -> None:
    """They span the copy's begin to the synchronize's end; the longer call names the pair; size and place are the
    copy's.
    """
    t = TraceBuilder()
    with t.op("aten::copy_", 1, 900):
        t.copy(PAGEABLE_D2H, at=10, stream=9, device=1)
        t.call("cudaStreamSynchronize_ptsz", 20, 500)
    (call,) = blocking(t)
    trace = t.trace()
    assert (call.ts, call.end, call.api) == (10_000, 500_000, "cudaStreamSynchronize")
    assert call.apis == ("cudaMemcpyAsync", "cudaStreamSynchronize")
    assert (call.copy, call.bytes, call.device, call.stream) == (PAGEABLE_D2H, 8, 1, 9)
    assert (trace.name(call.around), trace.tracks[call.track].tid, call.launches) == ("aten::copy_", str(MAIN), 0)


def test_the_first_of_two_equally_long_calls_names_a_pair() -> None:
    """So that the name doesn't depend on chance."""
    t = TraceBuilder()
    with t.op("aten::copy_", 1, 900):
        t.copy(PAGEABLE_D2H, at=10)
        t.call("cudaStreamSynchronize", 20, 21)
    assert [call.api for call in blocking(t)] == ["cudaMemcpyAsync"]


def test_a_call_without_a_copy_has_no_size() -> None:
    """NONE, which no copy has."""
    t = TraceBuilder()
    t.call("cudaDeviceSynchronize", 10, 20)
    t.call("cudaMalloc", 30, 40)
    assert [(call.copy, call.bytes) for call in blocking(t)] == [("", NONE)]  # the first is the profiler's own


@pytest.mark.parametrize(("kind", "copy"), [("1", "Memcpy HtoD"), ("2", "Memcpy DtoH"), ("3", ""), ("4", "")])
def test_a_hip_call_says_its_copys_direction_where_the_device_lost_it(kind: str, copy: str) -> None:
    """Kinds 1 and 2 of hipMemcpyKind; a copy on the device (3) is none, and 4 leaves it to the runtime."""
    t = TraceBuilder("rocm")
    t.call("hipMemcpyWithStream", 10, 500, kind=kind)
    assert [call.copy for call in blocking(t)] == ([] if kind == "3" else [copy])


@pytest.mark.parametrize(
    ("kind", "row", "copy"),
    [
        ("2", "Memcpy DtoD (Device -> Device)", "Memcpy DtoH"),
        ("2", "Memcpy DtoH (Device -> Host)", "Memcpy DtoH (Device -> Host)"),
        ("3", "Memcpy DtoD (Device -> Device)", ""),
        ("4", "Memcpy DtoH (Device -> Host)", "Memcpy DtoH (Device -> Host)"),
    ],
)
def test_a_hip_calls_own_kind_beats_the_devices_word(kind: str, row: str, copy: str) -> None:
    """ROCm reads back through a staging buffer and names the copy into that; kind 4 leaves it to the runtime."""
    t = TraceBuilder("rocm")
    t.copy(row, at=10, lasts=50, blocks=True)
    t.events[-2]["args"]["kind"] = kind
    assert [call.copy for call in blocking(t)] == ([copy] if copy else [])


def test_launch_blocking_has_the_facts_of_the_longest_launch() -> None:
    """It waited, for its own stream, and stands for all."""
    t = TraceBuilder()
    with t.op("aten::mm", 0, 60_000):
        for k in range(30):
            t.call("cudaLaunchKernel_ptsz", 10 + 1000 * k, 900 + 1000 * k + k)
            t._work("kernel", "gemm", 50 + 1000 * k, 800, 5 + k % 2, 3)
    (call,) = blocking(t)
    assert (call.api, call.apis, call.launches) == ("cudaLaunchKernel", ("cudaLaunchKernel",), 30)
    assert (call.ts, call.end) == (29_010_000, 29_929_000)
    assert [t.trace().slices.ts[row] for row in call.calls] == [29_010_000]
    assert (call.device, call.stream, call.waited, call.copy, call.bytes) == (3, 6, True, "", NONE)
    trace = t.trace()
    assert (trace.name(call.around), trace.tracks[call.track].tid) == ("aten::mm", str(MAIN))


def test_calls_come_in_order_of_thread_and_time() -> None:
    """Wherever they were found."""
    t = TraceBuilder()
    with t.thread("first", tid=MAIN - 1):
        t.launch("busy", at=1, lasts=900)
        t.call("cudaStreamSynchronize", 2000, 2100)
    t.call("cudaStreamSynchronize", 1500, 1510)
    t.call("cudaStreamSynchronize", 1000, 1010)
    sync_row(t, "Stream Sync", 30, 903, correlation=77)
    assert [call.ts // 1000 for call in blocking(t)] == [30, 2000, 1000, 1500]


def on_a_row_of_its_own(t: TraceBuilder, external: int) -> str:
    """The op that the one call is led to, where calls have tracks of their own; empty for none."""
    for event in t.events:
        if event.get("cat") == "cuda_runtime":
            event["tid"] = 4242
            event["args"]["External id"] = external
    trace = t.trace()
    (call,) = blocking_calls(trace, DeviceWork(trace))
    return trace.name(call.around) if call.around != NONE else ""


@pytest.mark.parametrize(
    ("start", "end", "led"), [(20, 30, True), (19.999, 30, False), (20, 30.001, False), (22, 28, True)]
)
def test_an_id_leads_to_an_op_only_if_that_contains_the_call(start: float, end: float, led: bool) -> None:
    """Ids are used again; the op's own bounds still count."""
    t = TraceBuilder()
    t.op("aten::nonzero", 20, 30)
    t.call("cudaStreamSynchronize", start, end)
    assert on_a_row_of_its_own(t, external=1) == ("aten::nonzero" if led else "")


def test_what_lies_around_a_call_by_time_goes_before_its_id() -> None:
    """A runtime's own call around it, on the calls' row."""
    t = TraceBuilder()
    t.op("aten::nonzero", 20, 30)
    with t.thread("calls", tid=4242), t.call("runFunction - wait_for_results", 21, 29):
        t.call("cudaStreamSynchronize", 22, 28)
    assert on_a_row_of_its_own(t, external=1) == "runFunction - wait_for_results"


def test_an_unknown_id_leads_nowhere() -> None:
    """The op may be missing."""
    t = TraceBuilder()
    t.op("aten::nonzero", 20, 30)
    t.call("cudaStreamSynchronize", 22, 28)
    assert on_a_row_of_its_own(t, external=99) == ""


def test_ids_lead_nowhere_where_calls_lie_on_the_threads_of_their_ops() -> None:
    """There the nesting says it: a call at the top is at the top."""
    t = TraceBuilder()
    with t.thread("other"):
        t.op("aten::nonzero", 20, 30)
        t.call("cudaEventQuery", 22, 23)
    t.call("cudaStreamSynchronize", 22, 28)
    t.events[-1]["args"]["External id"] = 1
    assert [call.around for call in blocking(t)] == [NONE]
