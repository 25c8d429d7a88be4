"""A time that the recorded step can't take is refused, and one that it hardly can is doubted."""

from __future__ import annotations

import pytest

from syncscan import api
from syncscan.errors import UsageError
from syncscan.model.duration import duration
from syncscan.whatif import calibrate
from tests.builder import TraceBuilder
from tests.whatif.story import Item, told

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
