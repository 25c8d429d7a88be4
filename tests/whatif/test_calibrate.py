"""The scales at which a step takes a known time, found with few replays."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan import api
from syncscan.errors import UsageError
from syncscan.model.duration import duration
from syncscan.whatif import calibrate
from syncscan.whatif.calibrate import (
    MAX_SCALE,
    MAX_STRETCH,
    MIN_SCALE,
    MIN_STRETCH,
    NEAR_ROUNDS,
    ROUNDS,
    ScaledTime,
    scales,
)
from tests.builder import TraceBuilder
from tests.whatif.story import Item, told

TARGET = 1e6
WITHIN = 1.01 * (MAX_SCALE - MIN_SCALE) / 2**ROUNDS
slopes = st.lists(st.tuples(st.floats(0.0, 3e6), st.floats(0.0, 2e6)), min_size=1, max_size=6)


class Step:
    """A step whose time is told by a function of the host's scale and the device's; counts how often it is asked."""

    def __init__(self, takes: Callable[[float, float], float]) -> None:
        self.takes, self.asked = takes, 0

    def __call__(self, scale: float, stretch: float) -> float:
        self.asked += 1
        return self.takes(scale, stretch)


def reaches(step: Step, scale: float, target: float) -> bool:
    """Whether the step takes this time at this scale as nearly as asked for, or jumps over it there."""
    near = abs(step(scale, 1.0) - target) <= target / 2**ROUNDS
    return near or step(scale - WITHIN, 1.0) <= target <= step(scale, 1.0)


@given(slopes)
def test_the_host_s_scale_is_where_the_step_takes_its_time(lines: list[tuple[float, float]]) -> None:
    """A step's time is the latest of several things, each so much of the host's time and so much of the device's."""
    step = Step(lambda scale, stretch: max(host * scale + device * stretch for host, device in lines))
    if not step(MIN_SCALE, 1.0) <= TARGET <= step(MAX_SCALE, 1.0):
        return
    scale, stretch = scales(ScaledTime(step), 0.6, TARGET)
    assert MIN_SCALE <= scale <= MAX_SCALE
    assert step(scale, stretch) == pytest.approx(TARGET, rel=0.02)  # an estimate that explains the step as well is kept
    if stretch == 1.0 and scale not in (0.6, MAX_SCALE):
        assert reaches(step, scale, TARGET)


def test_a_step_of_straight_lines_takes_a_third_of_the_replays() -> None:
    """Halving would take 20, and five are for the ends and for whether the host matters at all."""
    step = Step(lambda scale, stretch: max(4e5 * stretch + 3e5 * scale, 2e5 + 1e6 * scale))
    scale, stretch = scales(ScaledTime(step), 0.6, TARGET)
    assert (scale, stretch) == (pytest.approx(0.8, abs=2e-6), 1.0)
    assert step.asked <= 5 + ROUNDS // 3


@given(st.lists(st.floats(MIN_SCALE, MAX_SCALE), min_size=1, max_size=30), st.floats(0.05, 1.0))
def test_a_step_that_grows_in_jumps_takes_hardly_more_than_halving(jumps: list[float], part: float) -> None:
    """A replay that ends one cycle earlier or later jumps a little: then no line leads to where the time is reached."""
    step = Step(lambda scale, _: 1e5 + 1e6 * sum(jump <= scale for jump in jumps))
    target = 1e5 + 1e6 * len(jumps) * part
    explained = abs(step(0.6, 1.0) - target) <= 0.02 * target
    if explained or not step(MIN_SCALE, 1.0) < target <= step(MAX_SCALE, 1.0):
        return
    step.asked = 0
    scale, _ = scales(ScaledTime(step), 0.6, target)
    assert step.asked <= 5 + ROUNDS + 1
    assert reaches(step, scale, target)


@pytest.mark.parametrize(("work", "stretch"), [(2e5, MAX_STRETCH), (8e5, 1.25), (9e6, MIN_STRETCH)])
def test_where_the_host_can_t_explain_the_time_the_device_s_clocks_do(work: float, stretch: float) -> None:
    """As far as clocks go, and no further."""
    step = Step(lambda _, stretch: work * stretch)
    assert scales(ScaledTime(step), 0.6, TARGET) == (0.6, pytest.approx(stretch, abs=2e-6))


def test_a_second_time_is_found_from_what_is_known_of_the_first() -> None:
    """The ends and whether the host matters are the same, and the first time's place is nearer than they are."""
    step = Step(lambda scale, stretch: max(4e5 * stretch + 3e5 * scale, 2e5 + 1e6 * scale))
    times = ScaledTime(step)
    scales(times, 0.6, TARGET)
    step.asked = 0
    assert scales(times, 0.6, 0.9 * TARGET, NEAR_ROUNDS) == (pytest.approx(0.7, abs=2e-3), 1.0)
    assert step.asked <= 4


@given(st.lists(st.floats(MIN_SCALE, MAX_SCALE), max_size=20), st.floats(0.01, 0.99), st.lists(st.floats(0, 1)))
def test_what_is_known_leads_there_too(jumps: list[float], part: float, before: list[float]) -> None:
    """However many times were sought before."""
    step = Step(lambda scale, _: 1e5 + 1e6 * scale + 1e6 * sum(jump <= scale for jump in jumps))
    low, high = step(MIN_SCALE, 1.0), step(MAX_SCALE, 1.0)
    times, target = ScaledTime(step), low + part * (high - low)
    for other in before:
        scales(times, 0.6, low + other * (high - low))
    assert reaches(step, scales(times, 0.6, target)[0], target) or scales(ScaledTime(step), 0.6, target) == (0.6, 1.0)


FULL: list[Item] = [("launch", 100.0)] * 10
"""A step of 1 ms that its device fills: with other clocks it takes 0.7 to 1.5 ms."""


@pytest.mark.parametrize(("step_ms", "text"), [(50.0, "at most 1.50 ms"), (0.05, "at least 700 µs")])
def test_a_time_that_cannot_be_is_refused(step_ms: float, text: str) -> None:
    """With what was given, what was recorded and what the step may take; by every door that takes it."""
    trace = told(FULL).trace()
    with pytest.raises(UsageError, match="can't be right") as caught:
        api.analyze_trace(trace, step_ms=step_ms)
    assert duration(step_ms * 1e3) in caught.value.message
    assert text in caught.value.message
    analysis = api.analyze_trace(trace)
    with pytest.raises(UsageError, match="can't be right"):
        analysis.whatif("all", step_ms=step_ms)


def test_a_time_that_hardly_can_be_is_doubted() -> None:
    """Among the warnings, which stand on stderr and in JSON; one that can be isn't."""
    trace = told(FULL).trace()
    assert any(w.startswith("Doubtful: ") for w in api.analyze_trace(trace, step_ms=1.9).warnings)
    assert not any(w.startswith("Doubtful: ") for w in api.analyze_trace(trace, step_ms=0.8).warnings)


def test_where_nothing_can_be_replayed_the_recorded_time_decides() -> None:
    """A step of 0.1 ms doesn't take 5 in a CPU's trace either."""
    t = TraceBuilder(vendor="none")
    for start in t.steps(2, lasts=100):
        t.op("aten::add", start + 10, start + 20)
    with pytest.raises(UsageError, match="can't be right"):
        api.analyze_trace(t.trace(), step_ms=5.0)
    assert api.analyze_trace(t.trace(), step_ms=0.08).step.unprofiled_us == 80.0


@pytest.mark.parametrize("times", [lambda x: x, lambda x: 1 / x], ids=["longer", "shorter"])
def test_limits(times) -> None:
    """A tenth off is doubted, a half refused."""
    assert not calibrate.doubt(times(1.09), 1.0, 1.0)
    assert calibrate.doubt(times(1.11), 1.0, 1.0)
    calibrate.refuse(times(1.49), 1.0, 1.0)
    with pytest.raises(UsageError):
        calibrate.refuse(times(1.51), 1.0, 1.0)


@pytest.mark.parametrize("step_ms", [0.0, -1.0, float("nan"), float("inf")])
def test_what_is_no_time_is_refused(step_ms: float) -> None:
    """Before anything is read."""
    with pytest.raises(UsageError, match="greater than 0"):
        api.analyze("no.json", step_ms=step_ms)
