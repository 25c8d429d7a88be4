"""The loader's workers and a chip's power limit a step's pace too."""

from __future__ import annotations

import pytest

from syncscan import api
from syncscan.model.step import Bound
from syncscan.whatif.calibrated_step import slowdown
from syncscan.whatif.surroundings import loader_waits
from tests.builder import TraceBuilder


def loading(iterator: str) -> TraceBuilder:
    """Steps of 1,000 µs: 200 µs in the loader, then a wait for 400 µs of device work, then 300 µs of host work."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        t.scope(f"enumerate(DataLoader)#{iterator}.__next__", start + 10, start + 210)
        t.launch("kernel", at=start + 220, lasts=400)
        t.sync("aten::nonzero", at=start + 230)
    return t


def test_workers_set_the_pace_of_a_step_that_waits_for_them() -> None:
    """A host that comes back sooner only waits longer for its batch: nothing is gained, and the input is the limit."""
    p = api.analyze_trace(loading("_MultiProcessingDataLoaderIter").trace(), step_ms=1.0).whatif("all")
    assert p.saving_us == 0
    assert p.bound_after is Bound.INPUT


def test_another_threads_steps_are_not_waited_in() -> None:
    """The mean is over the steps of the thread that has the most of them."""
    t = TraceBuilder()
    with t.thread("warm-up"):
        t.step(0, 50)
    for start in t.steps(2, lasts=1000, start=100):
        t.scope("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", start, start + 300)
    assert loader_waits(t.trace()) == 300_000


def test_a_loader_without_workers_is_the_hosts_own_work() -> None:
    """The host's own computation stays without the sync, and comes earlier."""
    p = api.analyze_trace(loading("_SingleProcessDataLoaderIter").trace(), step_ms=1.0).whatif("all")
    assert p.saving_us > 300


def with_power(drawn: float, limit: float | None) -> TraceBuilder:
    """A trace whose unprofiled steps drew this power, in W."""
    t = TraceBuilder()
    t.op("aten::add", 0, 1)
    t.metadata["syncscan"] = {"clocks": {"calibrated": {"power_w": drawn, "power_limit_w": limit}}}
    return t


def test_a_cool_chip_does_not_slow_down() -> None:
    """300 of 700 W at half load leave room for full load."""
    assert slowdown(with_power(300, 700).trace(), 0.5) == 0


def test_a_hot_chip_slows_down() -> None:
    """600 of 700 W at 70 % load would be 812 W at full load: a lower clock makes up for it."""
    assert slowdown(with_power(600, 700).trace(), 0.7) == pytest.approx(0.061, abs=0.005)


def test_without_power_the_slowdown_is_the_documented_estimate() -> None:
    """A trace that says nothing of power gets the one number that was measured."""
    assert slowdown(with_power(600, None).trace(), 0.7) == 0.15


def test_a_launch_into_a_full_queue_is_no_work_of_the_host() -> None:
    """A host that launches 2,000 kernels of 20 µs can't run further ahead than the queue: the time that it is held in
    the launches isn't its own.
    """
    t = TraceBuilder()
    begin = now = 0.0
    for number in range(3):
        for k in range(2000):
            ahead = t.free_at() - now - 1000 * 20
            held = max(ahead, 0.0) if k % 100 == 0 else 0.0
            t.launch("kernel", at=now, lasts=20)
            t.events[-2]["dur"] += held
            now += 2 + held
        t.step(begin, now, number)
        begin = now
    p = api.analyze_trace(t.trace()).whatif()
    assert p.host_limit_us < 0.2 * p.baseline_us
    assert p.bound_after is Bound.DEVICE
