"""The step's time and its parts."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from syncscan.api import analyze, analyze_trace
from syncscan.cost.step import steps_of, times_held
from syncscan.model.finding import SyncPoint
from syncscan.model.step import NOT_MEASURED, Bound, StepSummary
from syncscan.model.trace import NONE, Step
from tests.builder import MAIN, TraceBuilder
from tests.each import each


def step(t: TraceBuilder) -> StepSummary:
    return analyze_trace(t.trace()).step


def kernels(share: float, syncs: bool = False, loader: float = 0) -> TraceBuilder:
    """Four 1000 µs steps with the device busy this part of each; host-bound, with a sync in the middle or a loader."""
    t = TraceBuilder()
    for at in t.steps(4, lasts=1000):
        if loader:
            t.scope("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, at + loader)
        t.launch(at=at + loader, lasts=500 * share)
        end = t.sync("aten::item", at=at + loader + 2) if syncs else at + loader + 2
        t.launch(at=max(end, at + 400) + 1, lasts=500 * share)
    return t


def test_means_are_over_the_steps():
    """Count, host time, wait and busy time are mean per step."""
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
    assert s.reason.startswith("The device is busy 99% of the step.")


def test_bound_by_syncs():
    """When the device is idle after them for a notable part."""
    t = TraceBuilder()
    for at in t.steps(4, lasts=1000):
        t.launch(at=at + 1, lasts=400)
        end = t.sync("aten::item", at=at + 5)
        t.launch(at=end + 350, lasts=100)
    s = step(t)
    assert s.bound is Bound.SYNC
    assert "without syncs, the step would be 40% shorter" in s.reason


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


def test_the_whole_trace_is_one_step_of_no_thread():
    """The host's part, from its first launch to its last one's end, on whichever threads they are."""
    t = TraceBuilder()
    t.op("aten::add", 20, 30)
    with t.thread("other"):
        t.launch(at=10, lasts=500)
    t.launch(at=40, lasts=5)
    assert steps_of(t.trace()) == (Step(0, NONE, 10_000, 41_000),)


def test_an_empty_trace():
    """Nothing to measure, said so."""
    reason = "The trace contains no slices. Withheld: waits, verdict and gains."
    assert step(TraceBuilder()) == replace(NOT_MEASURED, reason=reason, waits_withheld=True)


LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def test_input_is_what_the_steps_own_thread_waits_for():
    """Not what another thread loads meanwhile, nor what is loaded before, between or behind the steps."""
    t = TraceBuilder()
    t.scope(LOADER, 0, 50)
    for at in (100, 1200):
        t.scope(LOADER, at, at + 100)
        t.scope(LOADER, at + 500, at + 530)
        t.step(at, at + 1000)
        t.scope(LOADER, at + 1000, at + 1050)
        with t.thread("loader"):
            t.scope(LOADER, at + 200, at + 600)
    assert step(t).input_us == 130


def test_without_steps_input_is_what_the_programs_thread_waits_for():
    """Not what another one fetches ahead, nor what is loaded when the host has launched its last."""
    t = TraceBuilder()
    t.launch(at=0, lasts=1000)
    for tid in (MAIN, MAIN + 1):
        with t.thread("program", tid):
            t.scope(LOADER, 200, 300)
    t.launch(at=400, lasts=10)
    t.scope(LOADER, 500, 600)
    assert step(t).input_us == 100


@pytest.mark.parametrize(
    ("at", "bound"), [(0, Bound.HOST), (100, Bound.UNKNOWN), (299, Bound.UNKNOWN), (300, Bound.HOST)]
)
def test_only_launches_in_the_steps_are_asked_for_their_work(at: float, bound: Bound):
    """Ten kernels of a step are there; what ten calls gave the device before or behind the steps doesn't matter."""
    t = TraceBuilder()
    for start in (100, 200):
        for k in range(5):
            t.launch(at=start + 10 + 10 * k, lasts=5)
        t.step(start, start + 100)
    for k in range(11):
        t.call("cudaLaunchKernel", at, at, External=k)
    assert step(t).bound is bound


@pytest.mark.parametrize(("loader", "bound"), [(170, Bound.INPUT), (130, Bound.SYNC)])
def test_of_input_and_syncs_the_worse_one_is_named(loader: float, bound: Bound):
    """Without its sync the step would be about 15 % shorter."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        done = t.launch(at=start, lasts=600)
        t.call("cudaDeviceSynchronize", done + 1 - 150, done + 1)
        t.scope(LOADER, start + 700, start + 700 + loader)
    t.launch(at=4000, lasts=1)
    s = step(t)
    assert (s.bubble_us, s.input_us) == (150, loader)
    assert s.bound is bound


def with_lost_work() -> TraceBuilder:
    """Two of eight launches have their kernel in the trace."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=100):
        for k in range(3):
            t.call("cudaLaunchKernel", start + 10 * k, start + 10 * k + 1)
        t.launch(at=start + 50, lasts=5)
    return t


def unprofiled(us: float) -> TraceBuilder:
    """Kernels that work half of the recorded step, and the step's time without the profiler."""
    t = kernels(0.5)
    t.metadata["syncscan"] = {"unprofiled_step_us": us}
    return t


def without_kernels() -> TraceBuilder:
    """A step of a CPU."""
    t = TraceBuilder(vendor="none")
    with t.step(0, 1000):
        t.op("aten::add", 1, 5)
    return t


def behind_syncs() -> TraceBuilder:
    """Steps in which the device is idle for a quarter behind a sync."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        done = t.launch(at=start, lasts=600)
        t.call("cudaDeviceSynchronize", done + 1 - 250, done + 1)
    t.launch(at=4000, lasts=1)
    return t


@each(
    ("report", "reason"),
    [
        (kernels(0.95), "The device is busy 95% of the step."),
        (unprofiled(520), "The device is busy 50% of the step in the trace, 96% without the profiler."),
        (
            kernels(0.3, loader=400),
            "The device is busy 30% of the step; the host spends 40% waiting for the DataLoader.",
        ),
        (behind_syncs(), "The device is busy 60% of the step; without syncs, the step would be 25% shorter."),
        (kernels(0.3), "The device is busy 30% of the step and waits for the host to launch work."),
        (
            kernels(0.3, loader=200),
            "The device is busy 30% of the step, the host is in the DataLoader for 20%, and the device waits for the "
            "host to launch work.",
        ),
        (
            unprofiled(400),
            "The replay accounts for 992 µs, but the step took 400 µs without the profiler, so its bound can't be "
            "determined. So the timed steps aren't like the recorded ones, for example because a loop in the step "
            "takes more rounds: record more steps (--active) and time more (--calibrate), so that both hold all kinds.",
        ),
        (
            without_kernels(),
            "The trace contains no device work: it was recorded on a CPU, or without its device. Withheld: waits, "
            "verdict and gains.",
        ),
        (
            with_lost_work(),
            "Only 25% of the launches have device work in the trace: the device may be busy where it looks idle. "
            "Withheld: verdict and gains.",
        ),
    ],
)
def test_a_verdict_says_the_numbers_that_it_rests_on(report: TraceBuilder, reason: str):
    """In one sentence, before what it guesses."""
    assert step(report).reason.partition(" Estimate:")[0] == reason


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
    """A trace that a crash cut short may miss the device's part: nothing is concluded from it."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=100):
        t.launch("gemm", at=start + 5, lasts=90)
    path = tmp_path / "cut.json"
    path.write_bytes(t.json()[:-20])
    step = analyze(path).step
    assert (step.bound, step.outlook) == (Bound.UNKNOWN, None)
    assert step.reason.startswith("The trace is truncated, and a part of it doesn't show what bounds the step.")


def test_a_step_that_takes_no_time_gets_no_verdict():
    """All clocks stood still: there is nothing to take a share of."""
    t = TraceBuilder()
    t.call("cudaStreamSynchronize", 5, 5)
    t.launch("kernel", at=5, lasts=0)
    trace = t.trace()
    still = np.zeros(len(trace.slices), np.int64)
    trace = replace(trace, slices=replace(trace.slices, ts=still, dur=still))
    result = analyze_trace(trace).step
    reason = "The steps take no time, so their bound can't be determined."
    assert (result.bound, result.reason) == (Bound.UNKNOWN, reason)


def test_idle_time_behind_syncs_is_the_busiest_devices():
    """As the idle time that it is a part of: what a second device loses isn't added to the first's."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        for device, tid, lasts in ((0, MAIN, 700), (1, MAIN + 1, 400)):
            with t.thread("worker", tid):
                t.launch(at=start + 1, lasts=lasts, stream=7 + device, device=device)
                t.sync("aten::item", at=start + 10, stream=7 + device, device=device)
                t.launch(at=start + 800, lasts=100, stream=7 + device, device=device)
    s = step(t)
    assert s.bubble_us == (start + 801) - (start + 704)
    assert s.device_idle_us == 1000 - 700 - 2 - 100


def test_idle_time_behind_syncs_is_no_more_than_the_steps():
    """The last step's sync holds up work that comes long after all steps."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.launch(at=start + 1, lasts=980)
        t.synchronize(at=start + 2)
    t.launch(at=2700, lasts=10)
    s = step(t)
    assert s.bubble_us == s.device_idle_us == 20


def test_waits_of_two_threads_at_once_are_one_wait_of_the_step() -> None:
    """800 and 600 µs of a step that takes 1,000, within each other."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.launch("busy", at=0, lasts=899)
        with t.op("aten::first", 90, 950):
            t.call("cudaStreamSynchronize", 100, 900)
    with t.thread("second", MAIN + 1), t.op("aten::second", 290, 950):
        t.call("cudaStreamSynchronize", 300, 900)
    analysis = analyze_trace(t.trace())
    assert sorted(f.wait_us for f in analysis.findings) == [600, 800]
    assert analysis.step.wait_us == 800


def test_a_finding_of_several_threads_counts_a_moment_once() -> None:
    """One sync in one op occurs on two threads."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.launch("busy", at=0, lasts=899)
        for tid, begins in ((MAIN, 100), (MAIN + 1, 50)):
            with t.thread("worker", tid), t.op("aten::mine", begins - 10, 950):
                t.call("cudaStreamSynchronize", begins, 900)
    (finding,) = analyze_trace(t.trace()).findings
    assert (finding.count, finding.wait_us) == (2, 850)


def test_waits_one_after_the_other_add_up() -> None:
    """On one thread they can't be at once."""
    t = TraceBuilder()
    with t.step(0, 1000):
        for at in (0, 500):
            t.launch("busy", at=at, lasts=300)
            t.synchronize(at=at + 10)
    assert analyze_trace(t.trace()).step.wait_us == 2 * 291


def occurrences(*waits: tuple[int, int]) -> list[SyncPoint]:
    """Sync points that begin at such times and wait so long, ns."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.launch("busy", at=0, lasts=300)
        t.synchronize(at=10)
    one = analyze_trace(t.trace()).findings[0].occurrences[0]
    return [replace(one, ts=ts, wait_ns=wait, bubble_ns=0) for ts, wait in waits]


def test_only_waits_of_one_group_are_at_once() -> None:
    """In any order, as far apart as a clock goes; a group without waits held nothing."""
    late = 2**62
    groups = [(30, 10), (0, 20), (10, 15)], [(5, 20), (late, 7), (40, 0)], [], [(0, 20), (15, 1)], [(7, 0)]
    assert times_held([occurrences(*group) for group in groups]) == [35, 27, 0, 20, 0]


def test_the_host_is_ahead_by_the_work_that_is_left() -> None:
    """At a launch, of what was launched before it; behind by how long the device has been idle."""
    t = TraceBuilder()
    for at in t.steps(4, lasts=1000):
        for launched in (at, at + 10, at + 20):
            t.launch(at=launched, lasts=200)
        t.launch(at=at + 700, lasts=50)
    ahead = step(t).run_ahead
    assert ahead is not None
    assert (ahead.least_us, ahead.median_us) == (-249, 46)


def test_without_launches_nobody_is_ahead() -> None:
    """A trace without a device says nothing of it."""
    t = TraceBuilder()
    for at in t.steps(4, lasts=1000):
        t.op("aten::add", at, at + 5)
    assert step(t).run_ahead is None
