"""One calibration gives the projected numbers, their range and its reasons, and the bound after a removal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest

from syncscan.api import analyze_trace
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Removal
from syncscan.model.step import Bound
from syncscan.model.step_times import NOISY, StepTimes
from syncscan.whatif import Projector
from syncscan.whatif.calibrated_step import CalibratedStep
from syncscan.whatif.replay import period
from tests.builder import TraceBuilder
from tests.recordings import analyzed
from tests.whatif.story import Item, profiled, real, told

SAMPLES = Path(__file__).parents[2] / "sample_traces"
COOL = {"clocks": {"calibrated": {"power_w": 150, "power_limit_w": 700}}}
"""Capture's table of a chip with so much power to spare that it keeps its clock."""
IN_TURN: list[Item] = [("launch", 500.0), ("wait", 0.0), ("work", 400.0)]
"""The device is busy 500 µs, then the host 400 µs; without the wait both work at once."""
PASSED_ON: list[Item] = [("launch", 500.0), ("wait", 0.0), ("launch", 300.0), ("wait", 0.0), ("work", 100.0)]
"""Two waits, of which the second takes over what the first one waited for."""


def known(t: TraceBuilder, cool: bool = True) -> Analysis:
    """Its analysis as if the step took without the profiler what it took with it."""
    if cool:
        t.metadata["syncscan"] = COOL
    return profiled(analyze_trace(t.trace()))


def step(plan: Sequence[Item]) -> CalibratedStep:
    """The step of this plan, with nothing left to be estimated."""
    analysis = known(told(plan))
    return Projector(analysis.trace, analysis.findings, analysis.step.observed_us).calibrated()


def first(analysis: Analysis) -> Finding:
    """The finding that waits the earliest in a step."""
    return min(real(analysis), key=lambda f: f.occurrences[0].ts)


# ------------------------------------------------------------------ the numbers


def test_a_projection_has_the_step_before_and_after() -> None:
    """904 µs in turn, 501 µs at once; then the host works 404 µs of them, the device 500."""
    analysis = known(told(IN_TURN))
    p = analysis.whatif("all")
    assert p.removed == tuple(f.id for f in real(analysis))
    assert (p.observed_us, p.profiled_us, p.calibrated) == (904.0, 904.0, True)
    numbers = (p.baseline_us, p.predicted_us, p.host_limit_us, p.device_limit_us, p.host_scale)
    assert numbers == pytest.approx((904.0, 501.0, 404.0, 500.0, 1.0), abs=0.01)


def test_a_known_step_time_is_what_was_observed() -> None:
    """All numbers are the unprofiled step's; what the trace shows stands beside them."""
    p = analyze_trace(told(IN_TURN).trace(), step_ms=0.8).whatif()
    assert (p.observed_us, p.profiled_us, p.calibrated) == (800.0, 904.0, True)
    assert (p.baseline_us, p.predicted_us) == pytest.approx((800.0, 800.0), abs=0.01)


def test_without_one_numbers_are_parts_of_the_profiled_step() -> None:
    """The device's own work is no part of the estimate: it is what it is in the trace."""
    p = analyze_trace(told(IN_TURN).trace()).whatif()
    assert (p.observed_us, p.profiled_us, p.calibrated) == (904.0, 904.0, False)
    assert p.baseline_us == pytest.approx(904.0, abs=0.01)
    assert p.host_scale < 1.0
    assert p.device_limit_us == pytest.approx(500.0)
    assert p.device_share > 500.0 / 904.0


def timed(times: list[float]) -> Analysis:
    """The step in turn, of which capture timed these without the profiler."""
    t = told(IN_TURN)
    t.metadata["syncscan"] = {**COOL, "unprofiled_step_us": 904.0, "unprofiled_steps_us": times}
    return analyze_trace(t.trace())


def test_a_time_that_is_uncertain_makes_the_range_wider() -> None:
    """It holds what would be saved if the step took as long as it may; of a time that a user gives it holds no more."""
    unsure = ([804.0] * 5 + [1004.0] * 5) * 2
    quiet, wide = (timed(times).whatif("all") for times in ([904.0] * 20, unsure))
    assert (quiet.saving_us, quiet.baseline_us) == pytest.approx((wide.saving_us, wide.baseline_us))
    assert timed(unsure).whatif("all", step_ms=0.9041).range_us == pytest.approx(quiet.range_us, rel=1e-3)
    uncertainty = StepTimes(904.0, tuple(unsure), "device").uncertainty
    assert uncertainty is not None
    assert uncertainty > NOISY
    for part in (1 - uncertainty, 1 + uncertainty):
        end = timed(unsure).whatif("all", step_ms=0.904 * part)
        least, most = (us / wide.baseline_us for us in wide.range_us)
        assert least < end.predicted_us / end.baseline_us < most
    assert wide.range_us[1] - quiet.range_us[1] > 50


def test_a_time_is_taken_to_be_known_within_half_of_it() -> None:
    """However far a few steps lie apart: the replays that it may be as well take half of it, and half more."""
    t = told([("work", 400.0), ("launch", 10.0)])
    wild = [1.0, 4000.0] * 10
    t.metadata["syncscan"] = {**COOL, "unprofiled_step_us": 404.0, "unprofiled_steps_us": wild}
    analysis = analyze_trace(t.trace())
    calibration = Projector(analysis.trace, analysis.findings, 404.0).calibrated().calibration
    assert [period(replay) / 1e3 for replay in calibration.slack] == pytest.approx([202.0, 606.0], rel=0.01)


def test_what_a_finding_can_save_at_most_is_its_wait_its_calls_and_its_ops() -> None:
    """500 µs from the synchronize's begin to its end; of a read-back its whole op of 504 µs and a copy of 1 µs."""
    assert step(IN_TURN).most(0) == pytest.approx(500.0, abs=0.01)
    assert step([("launch", 500.0), ("read", 0.0), ("work", 400.0)]).most(0) == pytest.approx(505.0, abs=0.01)


def test_of_a_pageable_copy_its_launch_stays() -> None:
    """All of the call's 494 µs go but the 10 that it takes without a wait; the synchronize's 5 µs go too."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        t.launch(at=start, lasts=500)
        with t.op("aten::copy_", start + 9, start + 520):
            t.copy("Memcpy HtoD (Pageable -> Device)", at=start + 10, lasts=2, blocks=True)
            t.call("cudaStreamSynchronize", start + 505, start + 509)
    analysis = known(t)
    (result,) = real(analysis)
    projector = Projector(analysis.trace, analysis.findings, analysis.step.observed_us)
    assert result.removal is Removal.PINNED_COPY
    assert projector.calibrated().most(projector.number[result.id]) == pytest.approx(494.0 - 10.0 + 5.0, abs=2.0)


def test_a_finding_that_never_waited_in_the_steps_can_save_nothing() -> None:
    """No wait of the step has its number."""
    assert step(IN_TURN).most(7) == 0.0


def test_waits_that_turn_up_again_are_moved() -> None:
    """All of the first wait's 490 µs, and of the second one's 300 what the first then waits more."""
    findings = sorted(real(known(told(PASSED_ON))), key=lambda f: f.occurrences[0].ts)
    moved = [(f.moved_us, f.recoverable_us) for f in findings]
    assert moved == [pytest.approx((490.0, 1.0), abs=0.1), pytest.approx((197.0, 103.0), abs=0.1)]


def test_a_wait_that_is_gone_is_not_moved() -> None:
    """There is no other to take it over; nor are all of them together moved."""
    (only,) = real(known(told(IN_TURN)))
    assert only.recoverable_us is not None
    assert only.moved_us == 0.0
    analysis = known(told(PASSED_ON))
    projector = Projector(analysis.trace, analysis.findings, analysis.step.observed_us)
    assert projector.calibrated().moved(analysis.findings) == 0.0


# ------------------------------------------------------------------ how wide the range is


def test_steps_that_gain_differently_widen_the_range() -> None:
    """Every other step waits only when its work is done: alone, these take as long as before, the others half."""
    t = TraceBuilder()
    for number, start in enumerate(t.steps(4, lasts=1000)):
        t.launch(at=start + 1, lasts=500)
        t.synchronize(at=start + (900 if number % 2 else 3))
    p = known(t).whatif("all")
    ratio = p.predicted_us / p.baseline_us
    assert ratio == pytest.approx(0.75, abs=0.005)
    assert p.range_us[0] / p.baseline_us == pytest.approx(0.5, abs=0.001)  # none waits longer than half of a step
    assert p.range_us[1] / p.baseline_us == pytest.approx(1.01, abs=0.001)


def test_all_have_the_range_of_the_list_if_there_is_one() -> None:
    """Without its only sync a step has one range: in the list, in the finding, for all, and in the projection."""
    analysis = analyzed(SAMPLES / "logged.pt.trace.json.gz")
    p, (remedy,), (finding,) = analysis.whatif("all", fix=True), analysis.remedies, analysis.findings
    projected = tuple(p.baseline_us - us for us in reversed(p.range_us))
    assert finding.recoverable_us is not None
    assert remedy.range_us == pytest.approx(projected)
    assert finding.recoverable_range_us == pytest.approx(projected)
    assert analysis.step.recoverable_range_us == pytest.approx(projected)


def test_an_estimated_overhead_leaves_the_gain_open() -> None:
    """None of it may be the profiler's, or half as much more: both explain the trace as well as the estimate does."""
    t = told(IN_TURN)
    t.metadata["syncscan"] = COOL
    p = analyze_trace(t.trace()).whatif("all")
    scale = p.host_scale
    assert scale < 0.99
    ratios = [501 / (500 + 404 * host) for host in (1.0, scale, scale - (1 - scale) / 2)]
    slack = 0.01 + 0.10 * (1.0 - ratios[1])
    expected = (ratios[0] - slack, ratios[1], ratios[2] + slack)
    result = (p.range_us[0], p.predicted_us, p.range_us[1])
    assert [us / p.baseline_us for us in result] == pytest.approx(expected, abs=0.002)


def test_a_device_that_loses_a_part_of_its_pauses_slows_down_by_that_part() -> None:
    """It works 600 of 1,206 and then of 1,005 µs, a fifth of its pauses less: a fifth of the 90 µs that 15 % are."""
    plan: list[Item] = [("launch", 300.0), ("wait", 0.0), ("work", 200.0), ("launch", 300.0), ("wait", 0.0)]
    ranges = []
    for cool in (True, False):
        analysis = known(told([*plan, ("work", 400.0)]), cool)
        p = analysis.whatif(f"id:{first(analysis).id}")
        assert (p.baseline_us, p.predicted_us) == pytest.approx((1206.0, 1005.0), abs=0.01)
        ranges.append(p.range_us)
    lost = (600 / 1005 - 600 / 1206) / (1 - 600 / 1206)
    assert ranges[1][1] - ranges[0][1] == pytest.approx(90.0 * lost, abs=0.1)
    assert ranges[1][0] == ranges[0][0]


def test_a_step_that_takes_no_time_has_no_range() -> None:
    """Nothing is a share of it."""
    t = TraceBuilder()
    t.launch(at=5, lasts=0)
    t.call("cudaStreamSynchronize", 5, 5)
    trace = t.trace()
    still = np.zeros(len(trace.slices), np.int64)
    trace = msgspec.structs.replace(trace, slices=msgspec.structs.replace(trace.slices, ts=still, dur=still))
    p = Projector(trace, (), None).calibrated().projection([])
    assert (p.predicted_us, p.range_us) == (0.0, (0.0, 0.0))


# ------------------------------------------------------------------ what bounds the step


@pytest.mark.parametrize(("device", "host"), [(950, 958), (960, 948)])
def test_of_two_that_are_busy_all_the_step_the_device_bounds_it(device: float, host: float) -> None:
    """Host and device both work nine tenths of it and more: whatif says of the step as it is what the analysis says."""
    analysis = known(told([("launch", device), ("work", host)]))
    assert (analysis.step.bound, analysis.whatif().bound_after) == (Bound.DEVICE, Bound.DEVICE)


@pytest.mark.parametrize(("pause", "bound"), [(2.0, Bound.DEVICE), (1.0, Bound.SYNC)])
def test_pauses_between_queued_kernels_are_the_devices_own(pause: float, bound: Bound) -> None:
    """Kernels of 400 of 640 µs that were queued all along: with 200 µs of pauses they fill the step, with 100 not."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=640):
        for k in range(100):
            t._free[0, 7] = t.free_at() + (pause if k else 0.0)
            t.launch("small", at=start + 2 * k, lasts=4)
        t.synchronize(at=start + 201)
    assert known(t).whatif().bound_after is bound


# ------------------------------------------------------------------ what is said


POWER = "Without idle time, the device may reach its power limit: the range allows for kernels 15% slower."
KERNELS = "Kernels after a data-dependent shape are kept: a replacement may compute more or less."
WORKERS = "The step waits for the DataLoader's workers, which limit it with or without its syncs."


def test_a_device_without_pauses_is_noted() -> None:
    """Where it may run hot, and only of a step that something was removed from."""
    assert known(told(IN_TURN), cool=False).whatif("all").notes == (POWER,)
    assert known(told(IN_TURN)).whatif("all").notes == ()
    assert known(told([("launch", 900.0)]), cool=False).whatif().notes == ()
    host: list[Item] = [("launch", 300.0), ("wait", 0.0), ("work", 400.0)]
    assert known(told(host), cool=False).whatif("all").notes == ()


def shapes() -> TraceBuilder:
    """Steps of 1,000 µs with a `nonzero` that waits for 500 µs of work."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        t.launch(at=start + 1, lasts=500)
        t.sync("aten::nonzero", at=start + 10)
    return t


def test_kernels_that_stay_are_noted() -> None:
    """The note is about the removed findings."""
    assert known(shapes()).whatif("all").notes == (KERNELS,)
    assert known(shapes()).whatif().notes == ()


def test_a_step_at_its_loaders_pace_keeps_it() -> None:
    """Whatever is removed, it takes as long; that is said where something is."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        t.launch(at=start + 1, lasts=500)
        t.synchronize(at=start + 3)
        t.scope("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", start + 600, start + 900)
    stored, removed = known(t).whatif(), known(t).whatif("all")
    assert (stored.bound_after, removed.bound_after) == (Bound.INPUT, Bound.INPUT)
    assert removed.predicted_us == stored.predicted_us == pytest.approx(1000.0, abs=0.01)
    assert (stored.notes, removed.notes) == ((), (WORKERS,))
