"""A step's observed time, and the intervals that it is the mean of."""

from __future__ import annotations

import pytest

from syncscan.model.period import step_intervals, step_period
from tests.builder import TraceBuilder


def test_a_window_reaches_to_the_next_steps_begin() -> None:
    """A pause between steps belongs to the step before it; the last gets the usual pause."""
    t = TraceBuilder()
    for k in range(3):
        t.step(1000 * k, 1000 * k + 900)
    assert step_intervals(t.trace()) == [(0, 1_000_000), (1_000_000, 2_000_000), (2_000_000, 3_000_000)]


def test_a_step_whose_next_was_not_recorded_ends_with_its_own_end() -> None:
    """Steps 2 and 5 aren't neighbours: what lies between them is no pause."""
    t = TraceBuilder()
    t.step(0, 900, number=2)
    t.step(50_000, 50_900, number=5)
    assert step_intervals(t.trace()) == [(0, 900_000), (50_000_000, 50_900_000)]


def test_without_steps_the_whole_trace_is_one_window() -> None:
    """From the first slice's begin to the last one's end."""
    t = TraceBuilder()
    t.op("aten::add", 10, 20)
    t.op("aten::mul", 30, 50)
    assert step_intervals(t.trace()) == [(10_000, 50_000)]
    assert step_intervals(TraceBuilder().trace()) == []


def test_a_step_that_waits_takes_the_hosts_time() -> None:
    """Host and device both done: 1,000 µs."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=1000):
        t.launch("kernel", at=start + 10, lasts=300)
        t.synchronize(at=start + 20)
    assert step_period(t.trace()) == pytest.approx(1_000_000)


def test_a_host_that_runs_ahead_doesnt_shorten_the_step() -> None:
    """The host launches 800 µs of work in 100 µs and doesn't wait: a step takes the device's 800 µs."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=100):
        t.launch("kernel", at=start + 10, lasts=800)
    assert step_period(t.trace()) == pytest.approx(800_000, rel=0.01)


def test_one_long_step_is_not_the_devices_pace() -> None:
    """A host-bound step that takes longer than its neighbours moves the mean, and the device's own times don't."""
    t = TraceBuilder()
    for begin, end in ((0, 1000), (1000, 2000), (2000, 3600)):
        with t.step(begin, end):
            t.launch("kernel", at=end - 100, lasts=50)
    assert step_period(t.trace()) == pytest.approx(1_200_000)
