"""How far the device's clock is off the host's, told by what can't be, and taken back where both sides agree."""

from __future__ import annotations

import pytest

from syncscan.api import analyze_trace
from syncscan.facts.profiler_work import device_clock
from syncscan.model.analysis import Analysis
from syncscan.model.step import Bound
from tests.builder import TraceBuilder
from tests.each import each

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
