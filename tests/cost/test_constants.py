"""Each number that a verdict and a severity rest on, from both sides: traces just below it and just above."""

from __future__ import annotations

import pytest

from syncscan.api import analyze_trace
from syncscan.model.finding import Finding, Severity
from syncscan.model.step import Bound, StepSummary
from tests.builder import TraceBuilder
from tests.report.example import LAUNCHES


def step(t: TraceBuilder) -> StepSummary:
    return analyze_trace(t.trace()).step


# ------------------------------------------------------------------ what bounds a step


def working(device: float, unprofiled: float | None = None) -> TraceBuilder:
    """Steps of 1,000 µs with so much device work; `unprofiled`: what capture measured without the profiler."""
    t = TraceBuilder()
    if unprofiled is not None:
        t.metadata["syncscan"] = {"unprofiled_step_us": unprofiled}
    for start in t.steps(4, lasts=1000):
        t.launch("kernel", at=start + 1, lasts=device)
    return t


@pytest.mark.parametrize(("device", "bound"), [(905, Bound.DEVICE), (900, Bound.DEVICE), (895, Bound.HOST)])
def test_a_device_that_works_nine_tenths_of_a_step_bounds_it(device: float, bound: Bound) -> None:
    """90 % of the step as recorded."""
    assert step(working(device)).bound is bound


@pytest.mark.parametrize(("unprofiled", "bound"), [(552, Bound.DEVICE), (560, Bound.HOST)])
def test_or_nine_tenths_of_the_step_without_the_profiler(unprofiled: float, bound: Bound) -> None:
    """500 µs of device work, in a step that takes 552 or 560 µs when nobody records it."""
    assert step(working(500, unprofiled)).bound is bound


@pytest.mark.parametrize(("lost", "bound"), [(1, Bound.HOST), (2, Bound.HOST), (3, Bound.UNKNOWN)])
def test_a_verdict_needs_the_device_work_of_nine_tenths_of_the_launches(lost: int, bound: Bound) -> None:
    """With twenty launches per step, a trace that lost more of them says nothing about the device."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=1000):
        for k in range(20):
            if k < lost:
                t.call("cudaLaunchKernel", start + 10 * k, start + 10 * k + 1)
            else:
                t.launch("kernel", at=start + 10 * k, lasts=5)
    assert step(t).bound is bound


@pytest.mark.parametrize(("loader", "bound"), [(105, Bound.INPUT), (100, Bound.INPUT), (95, Bound.HOST)])
def test_a_loader_that_takes_a_tenth_of_a_step_bounds_it(loader: float, bound: Bound) -> None:
    """10 % of the step in the DataLoader's `__next__`, the device working 80 % of it."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        t.scope("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", start, start + loader)
        t.launch("kernel", at=start + 150, lasts=800)
    assert step(t).bound is bound


@pytest.mark.parametrize(("loader", "bound"), [(255, Bound.INPUT), (245, Bound.HOST)])
def test_a_loader_bounds_a_step_by_half_of_what_the_device_leaves(loader: float, bound: Bound) -> None:
    """The device is busy half of it; where the host's own work takes more than the loader, that is the limit."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        t.scope("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", start, start + loader)
        t.launch("kernel", at=start + 300, lasts=500)
    assert step(t).bound is bound


@pytest.mark.parametrize(("idle", "bound"), [(105, Bound.SYNC), (100, Bound.SYNC), (95, Bound.HOST)])
def test_idle_time_behind_syncs_of_a_tenth_of_a_step_bounds_it(idle: float, bound: Bound) -> None:
    """A synchronize of that length, behind which the device stands still in a step of 1,000 µs: its doing."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        done = t.launch("kernel", at=start, lasts=600)
        t.call("cudaDeviceSynchronize", done + 1 - idle, done + 1)
    t.launch("next", at=4000, lasts=1)
    result = step(t)
    assert result.bubble_us == pytest.approx(idle)
    assert result.bound is bound


# ------------------------------------------------------------------ how long a step is


def late(lag: float, lasts: float) -> float:
    """The observed time of steps of 1,000 µs whose kernel starts later by `lag` with every step, in µs."""
    t = TraceBuilder()
    for number, start in enumerate(t.steps(5, lasts=1000)):
        t.launch("kernel", at=start + 10, lasts=lasts)
        t.events[-1]["ts"] += number * lag
    return step(t).observed_us


@pytest.mark.parametrize(("lag", "observed"), [(53, 1053), (47, 1000)])
def test_a_device_that_falls_behind_by_a_twentieth_a_step_sets_the_pace(lag: float, observed: float) -> None:
    """5 % of a step later with every step: then the step takes as long as from one step's last work to the next's."""
    assert late(lag, lasts=500) == pytest.approx(observed)


@pytest.mark.parametrize(("lasts", "observed"), [(984, 1030), (973, 1000)])
def test_a_device_that_works_95_percent_of_the_time_sets_the_pace(lasts: float, observed: float) -> None:
    """Measured from one step's last work to the next one's: 95.5 % and 94.5 % of 1,030 µs."""
    assert late(30, lasts=lasts) == pytest.approx(observed)


# ------------------------------------------------------------------ how severe a finding is


@pytest.mark.parametrize(
    ("share", "severity"),
    [(0.0501, "high"), (0.05, "high"), (0.0499, "medium"), (0.01, "medium"), (0.0099, "low"), (0.0, "low")],
)
def test_a_severity_is_the_share_of_the_step_that_would_be_gained(share: float, severity: str) -> None:
    """High from 5 %, medium from 1 %."""
    assert Severity.of_share(share) is Severity(severity)


@pytest.mark.parametrize(("share", "severity"), [(0.2, "medium"), (0.011, "medium"), (0.009, "low")])
def test_an_upper_bound_is_never_severe(share: float, severity: str) -> None:
    """The most that a habit can save is no promise."""
    assert LAUNCHES.gaining_at_most(1000 * share, 1000).severity is Severity(severity)


@pytest.mark.parametrize(
    ("idle", "percent", "severity"),
    [(64, 6.0, Severity.HIGH), (56, 4.6, Severity.MEDIUM), (20, 1.2, Severity.MEDIUM), (16, 0.8, Severity.LOW)],
)
def test_a_finding_is_as_severe_as_what_its_removal_gains(idle: float, percent: float, severity: Severity) -> None:
    """A synchronize behind which the device stands still for so long, in steps of 1,000 µs of device work and that."""
    t = TraceBuilder(syncscan={"unprofiled_step_us": 1001 + idle})
    for start in t.steps(4, lasts=1001 + idle):
        t.launch("kernel", at=start + idle - 1, lasts=1000)
        t.synchronize(at=start + idle)
    (finding,) = analyze_trace(t.trace()).findings
    assert finding.recoverable_us is not None
    assert 100 * finding.recoverable_us / (1001 + idle) == pytest.approx(percent, abs=0.1)
    assert finding.severity is severity


def unprojected(wait: float, idle: float) -> Finding:
    """A finding of a trace that lost most of its kernels, so that nothing is projected; steps of 10,000 µs."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=10_000):
        for k in range(30):
            t.call("cudaLaunchKernel", start + 2 * k, start + 2 * k + 1)
        if not idle:
            t.launch("other", at=start + 98, lasts=10_000, stream=20)
        if wait:
            t.launch("kernel", at=start + 100, lasts=wait + 9)
        t.call("cudaStreamSynchronize", start + 110, start + 111 + wait + idle)
        t.launch("other", at=start + 111 + wait + idle, lasts=9950 - wait - idle)
    (finding,) = analyze_trace(t.trace()).findings
    assert finding.recoverable_us is None
    return finding


@pytest.mark.parametrize(
    ("wait", "severity"),
    [(5200, Severity.HIGH), (4800, Severity.MEDIUM), (1100, Severity.MEDIUM), (900, Severity.LOW)],
)
def test_where_nothing_is_projected_a_wait_counts_a_tenth(wait: float, severity: Severity) -> None:
    """A wait is mostly no loss: it is severe from half of the step on, where the device had work all along."""
    result = unprojected(wait, idle=0)
    assert result.wait_us == pytest.approx(wait, abs=3)
    assert result.severity is severity


@pytest.mark.parametrize(("idle", "severity"), [(520, Severity.HIGH), (470, Severity.MEDIUM), (70, Severity.LOW)])
def test_where_nothing_is_projected_idle_time_counts_in_full(idle: float, severity: Severity) -> None:
    """Idle time of the device after a wait is lost, however short the wait."""
    assert unprojected(wait=1, idle=idle).severity is severity
