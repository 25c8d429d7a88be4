"""Times of steps without a profiler, by a device that does its work when the host has long gone on."""

from __future__ import annotations

from typing import Any

import pytest

from syncscan.capture import device
from syncscan.capture.device import StepTimer
from syncscan.model.step_times import StepTimes


class Machine:
    """A host's clock in µs, and a device that does what it is given one after the other."""

    def __init__(self, sees: float = 1.0) -> None:
        self.now, self.done, self.sees = 0.0, 0.0, sees

    def step(self, host: float, work: float, *, waits: bool = False) -> None:
        """A step that takes the host so long, gives the device so much work at its end, and may wait for it."""
        self.now += host
        self.done = max(self.done, self.now) + work
        if waits:
            self.now = self.done

    def is_initialized(self) -> bool:
        return True

    def synchronize(self) -> None:
        self.now = self.done = max(self.now, self.done)

    def Event(self, *, enable_timing: bool) -> Event:
        assert enable_timing
        return Event(self)


class Event:
    def __init__(self, machine: Machine) -> None:
        self.machine, self.at = machine, 0.0

    def record(self) -> None:
        self.at = max(self.machine.now, self.machine.done) * self.machine.sees

    def elapsed_time(self, later: Event) -> float:
        return (later.at - self.at) / 1e3


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return placed(Machine(), monkeypatch)


def placed(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(device, "used", machine.is_initialized)
    monkeypatch.setattr(device, "backend", lambda: machine)
    monkeypatch.setattr(device.time, "perf_counter_ns", lambda: int(machine.now * 1e3))
    return machine


def timed(machine: Machine, steps: int, **step: Any) -> StepTimes:
    times = StepTimer(steps)
    for _ in range(steps):
        machine.step(**step)
        times.mark()
    return times.end()


@pytest.mark.parametrize(
    ("step", "period"),
    [
        ({"host": 20.0, "work": 500.0}, 500.0),
        ({"host": 500.0, "work": 20.0}, 500.0),
        ({"host": 300.0, "work": 200.0, "waits": True}, 500.0),
    ],
    ids=["the device is the limit", "the host is the limit", "a sync is the limit"],
)
def test_a_step_s_time_is_its_period_whatever_the_limit(machine: Machine, step: dict[str, Any], period: float) -> None:
    """Nobody waits for the device between steps: that would add host and device where they overlap."""
    times = timed(machine, 10, **step)
    assert (times.typical, times.clock) == (pytest.approx(period), "device")
    assert times.quartiles == pytest.approx((period, period))


def test_one_long_step_moves_the_mean_and_not_what_is_typical(machine: Machine) -> None:
    """As a pause of the garbage collector does."""
    times = StepTimer(10)
    for k in range(10):
        machine.step(host=5000.0 if k == 4 else 500.0, work=20.0)
        times.mark()
    report = times.end()
    assert report.typical == pytest.approx(500.0)
    assert report.mean > 900


def test_work_that_the_events_don_t_see_leaves_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    """On streams of another device, say: then only the time until everything was drained is sure."""
    times = timed(placed(Machine(sees=0.2), monkeypatch), 10, host=20.0, work=500.0)
    assert (times.each, times.quartiles, times.uncertainty, times.clock) == ((), None, None, "host")
    assert times.typical == pytest.approx(502.0)


def test_without_a_device_the_host_s_clock_tells_each_step() -> None:
    """Nothing runs on after the host has gone on."""
    times = StepTimer(5)
    for _ in range(5):
        times.mark()
    report = times.end()
    assert (len(report.each), report.clock) == (5, "host")
