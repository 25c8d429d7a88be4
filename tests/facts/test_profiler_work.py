"""The profiler's own work is no work of the program's, and its synchronize tells how far the device's clock is off."""

from __future__ import annotations

import pytest

from syncscan.api import analyze_trace
from syncscan.facts.profiler_work import device_clock, profiler_sync, profiler_syncs, profilers_own
from syncscan.model.analysis import Analysis
from syncscan.model.step import Bound
from syncscan.model.trace import NONE
from syncscan.report.phrases import steps_found
from tests.builder import MAIN, TraceBuilder
from tests.each import each


def found(t: TraceBuilder) -> int | None:
    """When the profiler's synchronize begins, µs; None without."""
    trace = t.trace()
    row = profiler_sync(trace)
    return None if row == NONE else int(trace.slices.ts[row]) // 1000


def recorded() -> TraceBuilder:
    """A step of 1000 µs with some work."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.launch("busy", at=1, lasts=500)
    return t


@pytest.mark.parametrize(
    "api",
    ["cudaDeviceSynchronize", "cudaDeviceSynchronize_v3020", "hipDeviceSynchronize", "xpuDeviceSynchronize",
     "mtiaDeviceSynchronize", "DeviceSynchronize"],
)  # fmt: skip
def test_every_vendors_device_synchronize_can_be_it(api: str) -> None:
    """With or without a version."""
    t = recorded()
    t.call(api, 1100, 1200)
    assert found(t) == 1100


@pytest.mark.parametrize("api", ["cudaStreamSynchronize", "cudaEventSynchronize", "myDeviceSynchronize", "cudaMalloc"])
def test_other_calls_arent(api: str) -> None:
    """The profiler waits for the whole device."""
    t = recorded()
    t.call(api, 1100, 1200)
    assert found(t) is None


def test_an_op_of_that_name_isnt_a_call() -> None:
    """Only runtime and driver calls are asked."""
    t = recorded()
    t.op("cudaDeviceSynchronize", 1100, 1200)
    assert found(t) is None


def test_of_several_it_is_the_last() -> None:
    """On any thread."""
    t = recorded()
    t.call("cudaDeviceSynchronize", 1100, 1200)
    with t.thread("other"):
        t.call("cudaDeviceSynchronize", 1300, 1400)
    t.call("cudaDeviceSynchronize", 1250, 1260)
    assert found(t) == 1300


def test_on_an_intel_device_it_waits_for_one_queue_after_the_other() -> None:
    """The program's own are in an op, or come before with Python in between."""
    t = recorded()
    t.call("urQueueFinish", 1100, 1200)
    for k in range(3):
        t.call("urQueueFinish", 1300 + 10 * k, 1305 + 10 * k)
    trace = t.trace()
    assert (trace.slices.ts[profiler_syncs(trace)] // 1000).tolist() == [1300, 1310, 1320]
    with t.op("aten::item", 1400, 1500):
        t.call("urQueueFinish", 1410, 1490)
    assert profiler_syncs(t.trace()).tolist() == []


@pytest.mark.parametrize(("at", "own"), [(999, None), (1000, 1000)])
def test_a_step_ends_before_it(at: int, own: int | None) -> None:
    """Inside of a step it is the program's."""
    t = recorded()
    t.call("cudaDeviceSynchronize", at, 1200)
    assert found(t) == own


def test_in_an_op_or_scope_it_is_the_programs() -> None:
    """However deep."""
    for kind in ("op", "scope"):
        t = recorded()
        with getattr(t, kind)("outer", 1100, 1300), t.call("cudaOther", 1110, 1290):
            t.call("cudaDeviceSynchronize", 1120, 1200)
        assert found(t) is None


def test_inside_another_call_alone_it_is_the_profilers() -> None:
    """A vendor's runtime may wrap it."""
    t = recorded()
    with t.call("cudaOther", 1110, 1290):
        t.call("cudaDeviceSynchronize", 1120, 1200)
    assert found(t) == 1120


@pytest.mark.parametrize(("launched", "closing"), [(1100, 1100), (1101, None)])
def test_a_launch_after_it_makes_it_the_programs(launched: int, closing: int | None) -> None:
    """The profiler stops collecting then; one that began together with it, on another thread, doesn't count."""
    t = recorded()
    t.call("cudaDeviceSynchronize", 1100, 1200)
    with t.thread("other"):
        t.launch("more", at=launched, lasts=10)
    assert found(t) == closing


def test_work_without_a_launch_says_nothing() -> None:
    """Its launch may lie before the recording."""
    t = recorded()
    t.call("cudaDeviceSynchronize", 1100, 1200)
    t._work("kernel", "stray", 1300, 10, 7, 0)
    t.events[-1]["args"]["correlation"] = 999_999
    assert found(t) == 1100


@pytest.mark.parametrize(
    ("frames", "closing"),
    [
        (["train.py(1): main", "torch/cuda/__init__.py(9): synchronize"], None),
        (["train.py(1): main"], 1100),
        (["train.py(1): main", "torch/profiler/profiler.py(3): stop", "torch/cuda/__init__.py(9): synchronize"], 1100),
    ],
)
def test_frames_tell_whose_it_is(frames: list[str], closing: int | None) -> None:
    """The program's is called through torch's own function, and not by the profiler."""
    t = recorded()
    for depth, name in enumerate(frames):
        t.frame(name, 1010 + depth, 1300 - depth)
    t.call("cudaDeviceSynchronize", 1100, 1200)
    assert found(t) == closing


@pytest.mark.parametrize(("begin", "end", "closing"), [(1100, 1200, None), (1101, 1300, 1100), (1000, 1199, 1100)])
def test_only_frames_around_it_tell(begin: int, end: int, closing: int | None) -> None:
    """The frames must begin before it and end after it; its own bounds are enough."""
    t = recorded()
    t.frame("torch/cuda/__init__.py(9): synchronize", begin, end)
    t.call("cudaDeviceSynchronize", 1100, 1200)
    assert found(t) == closing


@pytest.mark.parametrize(
    ("own_frame", "other", "at"),
    [("train.py(1): main", "torch/cuda/__init__.py(9): synchronize", 1100),
     ("torch/cuda/__init__.py(9): synchronize", "torch/profiler/profiler.py(3): stop", None)],
)  # fmt: skip
def test_another_threads_frames_dont_tell(own_frame: str, other: str, at: int | None) -> None:
    """Neither that it is the program's nor that it isn't."""
    t = recorded()
    t.frame(own_frame, 1000, 1300)
    with t.thread("other"):
        t.frame(other, 1000, 1300)
    t.call("cudaDeviceSynchronize", 1100, 1200)
    assert found(t) == at


def test_a_trace_without_calls_has_none() -> None:
    """Not an error."""
    assert found(TraceBuilder()) is None


STEP = 2400.0


def steps(held: dict[int, float], name: str = "Activity Buffer Request", between: bool = False) -> TraceBuilder:
    """Four steps of 20 launches; in some of them one launch, or the pause behind it, holds the profiler's own work.

    Args:
        held: number of the step → how long, µs.
        name: of the row.
        between: it lies behind the launch, where the thread does nothing else.
    """
    t, at = TraceBuilder(), 0.0
    for number in range(4):
        overhead_of_step = held.get(number, 0.0)
        with t.step(at, at + STEP + overhead_of_step):
            start = at + 10
            for launch in range(20):
                overhead = overhead_of_step if launch == 10 else 0.0
                inside = 0.0 if between else overhead
                with t.op("aten::linear", start, start + 18 + inside):
                    t.call("cudaLaunchKernel", start + 3, start + 7 + inside)
                    t._work("kernel", "gemm", start + 8 + inside, 30, 7, 0)
                if overhead:
                    begin = start + (30 if between else 4)
                    t.event(ph="X", cat="overhead", name=name, pid=-1, tid=0, ts=begin, dur=overhead, args={})
                start += 100 + overhead
            t.sync("aten::item", at=start)
        at += STEP + overhead_of_step
    return t


def analyzed(t: TraceBuilder) -> Analysis:
    return analyze_trace(t.trace())


@pytest.mark.parametrize("between", [False, True], ids=["in a call", "between calls"])
@pytest.mark.parametrize("held", [{1: 10_000.0}, dict.fromkeys(range(4), 3000.0)], ids=["one step", "each step"])
def test_the_step_is_as_long_as_without_it(held: dict[int, float], between: bool) -> None:
    """Its time, its verdict, its host's parts and its projections are those of the same steps without the rows."""
    usual, analysis = analyzed(steps({})), analyzed(steps(held, between=between))
    assert analysis.step.observed_us == usual.step.observed_us == STEP
    assert analysis.step.reason == usual.step.reason
    assert analysis.host_time.counted == usual.host_time.counted
    assert analysis.whatif("all").predicted_us == pytest.approx(usual.whatif("all").predicted_us, rel=1e-3)
    assert analysis.whatif("all").host_limit_us == pytest.approx(usual.whatif("all").host_limit_us, rel=1e-3)


def test_it_is_reported() -> None:
    """In how many steps, and how long."""
    text = steps_found(analyzed(steps({1: 10_000.0})))
    assert "Profiler overhead in 1 of them (10.0 ms, rows of category overhead) is excluded from all times." in text
    assert "profiler's own" not in steps_found(analyzed(steps({1: 20.0})))


@pytest.mark.parametrize("name", ["Command Buffer Full", "Lazy Function Loading", "Driver Compiler"])
def test_what_the_driver_does_is_the_steps(name: str) -> None:
    """A full queue, a kernel that is loaded when it is first used: so it is without a profiler too."""
    analysis = analyzed(steps({1: 10_000.0}, name))
    assert analysis.step.observed_us == STEP + 2500
    assert profilers_own(analysis.trace) == ()


def test_a_row_beside_a_working_thread_holds_nobody() -> None:
    """CUPTI flushes its buffers on a thread of its own."""
    t = steps({})
    t.event(ph="X", cat="overhead", name="Buffer Flush", pid=-1, tid=0, ts=100, dur=900, args={})
    assert profilers_own(t.trace()) == ()


def test_a_row_on_a_threads_own_track_is_of_that_thread() -> None:
    """So kineto writes it since 2026."""
    t = steps({})
    t.event(ph="X", cat="overhead", name="Buffer Flush", pid=MAIN, tid=MAIN, ts=1500, dur=80, args={})
    (own,) = profilers_own(t.trace())
    assert (own.begin, own.end) == (1_500_000, 1_580_000)


DEVICE = ("kernel", "gpu_memcpy")


def reading(vendor: str = "cuda", *, closed: bool = False, reads: bool = True) -> TraceBuilder:
    """Three steps that launch three kernels of 100 µs and read a number back.

    Args:
        vendor: whose device.
        closed: more is launched behind them, and the profiler synchronizes.
        reads: whether the number is read back.
    """
    t = TraceBuilder(vendor=vendor)
    for start in t.steps(3, lasts=1000):
        for k in range(3):
            with t.op("aten::mm", start + 100 + 10 * k, start + 108 + 10 * k):
                t.launch("gemm", at=start + 101 + 10 * k, lasts=100)
        if reads:
            t.sync("aten::item", at=start + 150)
    if closed:
        for k in range(4):
            t.launch("gemm", at=3001 + 2 * k, lasts=50)
        t.synchronize(at=3020)
    return t


def shifted(t: TraceBuilder, us: float) -> TraceBuilder:
    """Move all device times of a trace by so much."""
    for event in t.events:
        event["ts"] += us if event.get("cat") in DEVICE else 0
    return t


def costs(analysis: Analysis) -> tuple[Bound, float, list[float]]:
    """The verdict, the step's time and how long each finding waits."""
    return analysis.step.bound, analysis.step.observed_us, [f.wait_us for f in analysis.findings]


def test_both_sides_bound_it() -> None:
    """Kernels begin 1 µs behind their calls, and reads return 1 µs behind their copies."""
    clock = device_clock(reading().trace())
    assert (clock.least, clock.most, clock.evidence, clock.wrong, clock.shift) == (-1000, 1000, 3, False, None)


@pytest.mark.parametrize("vendor", ["cuda", "rocm"])
@each("us", [-80.0, -40.0, 10.0, 40.0, 80.0])
def test_a_constant_shift_is_taken_back_and_reported(vendor: str, us: float) -> None:
    """Early and late alike: the numbers are those of the recording that isn't shifted."""
    right, analysis = analyze_trace(reading(vendor).trace()), analyze_trace(shifted(reading(vendor), us).trace())
    assert costs(analysis)[0] is costs(right)[0]
    assert costs(analysis)[1] == pytest.approx(costs(right)[1], abs=1)
    assert costs(analysis)[2] == pytest.approx(costs(right)[2], abs=1)
    (text,) = [warning for warning in analysis.warnings if "clock" in warning]
    assert f"{abs(us):.0f} µs {'late' if us > 0 else 'early'} by the host's clock" in text
    assert analysis.integrity.lacks == ()


@pytest.mark.parametrize("us", [-300.0, 300.0, 3000.0])
def test_one_that_is_too_far_withholds_the_numbers(us: float) -> None:
    """It is said in either direction."""
    analysis = analyze_trace(shifted(reading(), us).trace())
    assert analysis.step.bound is Bound.UNKNOWN
    assert "clocks of host and device disagree" in analysis.step.reason


def test_the_profilers_own_synchronize_tells_it_too() -> None:
    """It returns when all work is done; nothing is read back here."""
    clock = device_clock(shifted(reading(reads=False, closed=True), 300).trace())
    assert clock.late
    assert not device_clock(reading(reads=False, closed=True).trace()).wrong


def test_a_synchronize_that_no_clock_explains_tells_nothing() -> None:
    """It returns long before the work is done, and that begins right behind its launches."""
    t = reading(reads=False)
    t.launch("long", at=3010, lasts=5000)
    t.call("cudaDeviceSynchronize", 3020, 3050)
    assert not device_clock(t.trace()).wrong


def few(reads: int) -> TraceBuilder:
    """So many steps, each a kernel and a read-back, and nothing else that waits."""
    t = TraceBuilder()
    for start in t.steps(reads, lasts=1000):
        t.launch("gemm", at=start, lasts=100)
        t.sync("aten::item", at=start + 50)
    return t


@pytest.mark.parametrize("reads", [1, 2])
def test_few_read_backs_tell_it_where_all_work_begins_late(reads: int) -> None:
    """No damaged event makes every kernel begin so long behind its launch."""
    assert not device_clock(few(reads).trace()).wrong
    assert device_clock(shifted(few(reads), 300).trace()).late
    assert analyze_trace(shifted(few(reads), 300).trace()).step.bound is Bound.UNKNOWN


def test_a_read_back_of_an_intel_device_tells_it_too() -> None:
    """Its host waits for a queue where others wait for a stream."""
    t = shifted(reading(), 300)
    names = {"cudaLaunchKernel": "urEnqueueKernelLaunch", "cudaMemcpyAsync": "urEnqueueUSMMemcpy"}
    for event in t.events:
        if event["cat"] == "cuda_runtime":
            event |= {"cat": "xpu_runtime", "name": names.get(event["name"], "urQueueFinish")}
    assert device_clock(t.trace()).late


def test_few_late_copies_alone_tell_nothing() -> None:
    """They may be damaged: other work begins right behind its launch."""
    t = few(2)
    for event in t.events:
        event["ts"] += 300 if event.get("cat") == "gpu_memcpy" else 0
    assert not device_clock(t.trace()).wrong


@pytest.mark.parametrize("vendor", ["cuda", "rocm"])
def test_a_synchronize_of_the_only_stream_tells_it_too(vendor: str) -> None:
    """It waits for all there is, as a device's does."""
    t = TraceBuilder(vendor=vendor)
    for start in t.steps(3, lasts=1000):
        t.launch("gemm", at=start + 10, lasts=400)
        t.synchronize(at=start + 20, api="cudaStreamSynchronize", stream=7)
    assert not device_clock(t.trace()).wrong
    assert device_clock(shifted(t, 300).trace()).late


def test_a_trace_without_a_device_tells_nothing() -> None:
    """Nor does one without calls."""
    t = TraceBuilder(vendor="none")
    t.op("aten::add", 0, 10)
    assert device_clock(t.trace()).shift is None
