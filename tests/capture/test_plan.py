"""A plan's arithmetic, and what it refuses."""

from __future__ import annotations

import signal

import pytest

from syncscan.capture.plan import Demand, Plan, signal_number
from syncscan.errors import UsageError


def test_default_plan_needs_twenty_one_steps() -> None:
    """3 to settle, 10 timed, then wait 1, warmup 4, active 3."""
    assert Plan().steps == 21


def test_without_calibration_nothing_settles() -> None:
    """Steps before the profiler serve the calibration alone."""
    assert Plan(calibrate=0).unprofiled == 0


@pytest.mark.parametrize("wrong", [{"wait": -1}, {"warmup": -1}, {"active": 0}, {"repeat": 0}, {"calibrate": -2}])
def test_impossible_numbers_are_refused(wrong: dict[str, int]) -> None:
    """The message names the option and its value."""
    (name, value) = next(iter(wrong.items()))
    with pytest.raises(UsageError, match=f"{name} is {value}"):
        Plan(**wrong)


def begun(demand: Demand, steps: int, asks: tuple[int, ...] = ()) -> list[int]:
    """The steps at which a capture of no length begins; `asks` are steps in which one is asked for."""
    matches = []
    for step in range(steps):
        for _ in range(asks.count(step)):
            demand.ask()
        if demand.due(step):
            matches.append(step)
    return matches


def test_without_a_wish_one_capture_begins_at_once() -> None:
    """And no other."""
    demand = Demand()
    assert (begun(demand, 100), demand.standing, demand.pending) == ([0], False, False)


def test_a_late_one_begins_once_at_its_step() -> None:
    """Counted from the first."""
    assert begun(Demand(start_at=30), 100) == [30]


def test_a_period_counts_from_where_the_last_began() -> None:
    """The first begins at once, or where it was asked to."""
    assert begun(Demand(every=40), 100) == [0, 40, 80]
    assert begun(Demand(every=40, start_at=10), 100) == [10, 50, 90]


def test_a_signal_or_a_trigger_alone_begins_one_for_each_time() -> None:
    """Two that come at once are two captures, one after the other: none is lost."""
    assert begun(Demand(on_signal="USR2"), 100, asks=(5, 50, 50)) == [5, 50, 51]
    assert begun(Demand(on_trigger=True), 100, asks=(7,)) == [7]


def test_a_period_and_a_signal_go_together() -> None:
    """Each has its own."""
    assert begun(Demand(every=50, on_signal="USR2"), 100, asks=(7,)) == [0, 7, 50]


@pytest.mark.parametrize("name", ["USR2", "SIGUSR2", "usr2", str(int(signal.SIGUSR2)), signal.SIGUSR2])
def test_a_signal_has_many_names(name: str | int) -> None:
    """All of them are its number."""
    assert signal_number(name) == signal.SIGUSR2


@pytest.mark.parametrize("name", ["NOPE", "KILL", "TERM", "SIGINT", "0", "9999"])
def test_a_signal_that_is_none_or_means_something_else_is_refused(name: str) -> None:
    """Before anything runs."""
    with pytest.raises(UsageError, match=r"has no signal|is reserved"):
        signal_number(name)


@pytest.mark.parametrize("wrong", [{"start_at": -1}, {"every": 0}])
def test_impossible_demands_are_refused(wrong: dict[str, int]) -> None:
    """As the plan's are."""
    with pytest.raises(UsageError):
        Demand(**wrong)
