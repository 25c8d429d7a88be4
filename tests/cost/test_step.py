"""The measured step: throughput, its parts, and the verdict with the numbers it rests on."""

from __future__ import annotations

import pytest

from syncscan.api import analyze, analyze_trace
from syncscan.model.step import Bound, StepSummary
from tests.builder import TraceBuilder


def step(t: TraceBuilder) -> StepSummary:
    return analyze_trace(t.trace()).step


def kernels(share: float, syncs: bool = False, loader: float = 0) -> TraceBuilder:
    """Four steps of 1000 µs whose device works this part of each; host-held, with a sync in the middle or a loader."""
    t = TraceBuilder()
    for at in t.steps(4, lasts=1000):
        if loader:
            t.scope("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, at + loader)
        t.launch(at=at + loader, lasts=500 * share)
        end = t.sync("aten::item", at=at + loader + 2) if syncs else at + loader + 2
        t.launch(at=max(end, at + 400) + 1, lasts=500 * share)
    return t


def test_means_are_over_the_steps():
    """Count, host time, wait and busy time are means a step."""
    s = step(kernels(0.5, syncs=True))
    assert s.count == 4
    assert s.observed_us == s.host_us == 1000
    assert s.device_busy_us == 500 + 2
    assert s.device_idle_us == 1000 - 502
    assert s.wait_us == 253 - 6


def test_the_step_is_as_long_as_the_device_needs():
    """A host that runs ahead doesn't make the step shorter: its period is the device's."""
    t = TraceBuilder()
    for at in t.steps(4, lasts=100):
        t.launch(at=at + 1, lasts=900)
    s = step(t)
    assert s.host_us == 100
    assert s.observed_us == pytest.approx(900, rel=0.01)
    assert s.bound is Bound.DEVICE


def test_bound_by_the_device():
    """When it works nearly all the step, waits or not."""
    s = step(kernels(0.99, syncs=True))
    assert s.bound is Bound.DEVICE
    assert s.reason == "The device works 99% of the step."


def test_bound_by_syncs():
    """When the device stands idle behind them for a notable part."""
    t = TraceBuilder()
    for at in t.steps(4, lasts=1000):
        t.launch(at=at + 1, lasts=400)
        end = t.sync("aten::item", at=at + 5)
        t.launch(at=end + 350, lasts=100)
    s = step(t)
    assert s.bound is Bound.SYNC
    assert "behind syncs" in s.reason


def test_bound_by_the_host():
    """When the device waits for launches and nobody waits for it."""
    assert step(kernels(0.3)).bound is Bound.HOST


def test_bound_by_the_input():
    """When the host stands in the DataLoader while the device runs dry."""
    s = step(kernels(0.3, loader=500))
    assert s.bound is Bound.INPUT
    assert s.input_us == 500
    assert "50%" in s.reason


def test_a_loader_beside_a_busy_device_is_no_bound():
    """Waiting for input that the device doesn't miss costs nothing."""
    t = TraceBuilder()
    for at in t.steps(4, lasts=1000):
        t.scope("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, at + 500)
        t.launch(at=at + 501, lasts=990)
    assert step(t).bound is Bound.DEVICE


def test_without_device_work_nothing_is_claimed():
    """A CPU's trace has no bound."""
    t = TraceBuilder(vendor="none")
    for at in t.steps(2, lasts=1000):
        t.op("aten::add", at + 1, at + 5)
    assert step(t).bound is Bound.UNKNOWN


def test_without_steps_the_trace_is_one():
    """Numbers are for the whole trace."""
    t = TraceBuilder()
    t.launch(at=0, lasts=500)
    t.sync("aten::item", at=10)
    s = step(t)
    assert s.count == 1
    assert s.observed_us == pytest.approx(504, abs=4)


def test_an_empty_trace():
    """Nothing to measure, said so."""
    s = step(TraceBuilder())
    assert (s.count, s.bound) == (0, Bound.UNKNOWN)


@pytest.mark.parametrize(("stored", "expected"), [(812.5, 812.5), (0, None), ("fast", None), (None, None)])
def test_the_unprofiled_step_is_taken_from_capture(stored: object, expected: float | None):
    """Where capture timed it; nonsense counts as not timed."""
    t = TraceBuilder(syncscan={"unprofiled_step_us": stored})
    for at in t.steps(2, lasts=1000):
        t.launch(at=at + 1, lasts=500)
    assert step(t).unprofiled_us == expected


def test_intended_waits_are_not_counted():
    """A wait that is nobody's fault (outside all steps) isn't part of the step's wait."""
    t = TraceBuilder()
    t.sync("aten::item", at=0, wait=100)
    for at in t.steps(2, lasts=1000, start=500):
        t.launch(at=at + 1, lasts=500)
    assert step(t).wait_us == 0


def test_a_trace_without_most_of_its_device_work_gets_no_verdict():
    """Where a file cut short lost the kernels of most launches, the idle device is not a fact."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=100):
        for k in range(8):
            t.launch("gemm", at=start + 10 * k, lasts=5)
    kernels = [e for e in t.events if e.get("cat") == "kernel"]
    t.events = [e for e in t.events if e not in kernels[:-2]]
    assert analyze_trace(t.trace()).step.bound is Bound.UNKNOWN


def test_a_trace_cut_short_gets_no_verdict_and_no_advice(tmp_path):
    """What a crash left of a trace may lack the device's part: nothing is concluded from it."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=100):
        t.launch("gemm", at=start + 5, lasts=90)
    path = tmp_path / "cut.json"
    path.write_bytes(t.json()[:-20])
    step = analyze(path).step
    assert (step.bound, step.advice) == (Bound.UNKNOWN, ())


def test_a_step_that_takes_no_time_gets_no_verdict():
    """All clocks stood still: there is nothing to take a share of."""
    t = TraceBuilder()
    t.call("cudaStreamSynchronize", 5, 5)
    t.launch("kernel", at=5, lasts=0)
    trace = t.trace()
    trace.slices.ts[:], trace.slices.dur[:] = 0, 0
    assert analyze_trace(trace).step.bound is Bound.UNKNOWN
