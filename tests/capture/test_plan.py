"""A plan's arithmetic, and what it refuses."""

import pytest

from syncscan.capture.plan import Plan
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
