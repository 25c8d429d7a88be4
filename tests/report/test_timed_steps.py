"""Where timed steps scatter by more than their median, a report leads with the mean; no number claims more digits."""

from __future__ import annotations

import pytest

from syncscan.api import analyze_trace
from syncscan.model.analysis import Analysis
from syncscan.model.step import Bound
from syncscan.report import render
from syncscan.report.timed_steps import known_within, sentence
from tests.builder import TraceBuilder

FORMATS = ("text", "markdown", "html", "json")


def timed(steps_us: list[float], **stored: float) -> Analysis:
    """Three recorded steps of 1 ms, and the times of others without the profiler."""
    median = sorted(steps_us)[len(steps_us) // 2]
    times = {"unprofiled_step_us": median, "unprofiled_steps_us": steps_us, **stored}
    t = TraceBuilder(syncscan={"schema": "syncscan.capture/1", **times})
    for start in t.steps(3, lasts=1000):
        t.op("aten::add", start + 5, start + 900)
        t.launch("gemm", at=start + 910, lasts=50)
    return analyze_trace(t.trace())


@pytest.mark.parametrize(
    ("us", "uncertainty", "text"),
    [
        (46_100, 3.1, "about 50 ms"),
        (46_100, 0.3, "46 ms"),
        (46_100, 0.02, "46.1 ms"),
        (960, 0.6, "about 1 ms"),
        (3290, 0.08, "3.3 ms"),
    ],
)
def test_a_time_has_the_digits_that_its_range_leaves(us: float, uncertainty: float, text: str) -> None:
    """One from ±50 % on, two from ±5 % on."""
    assert known_within(us, uncertainty) == text


def test_unsteady_steps_lead_with_their_mean() -> None:
    """Ten steps of 100 µs to 10 ms: the headline has the mean, and a sentence says how far the median is known."""
    unsteady = timed([100.0, 9000.0, 200.0, 10_000.0, 150.0, 8000.0, 900.0, 7000.0, 120.0, 300.0])
    assert "10 steps without the profiler took 100 µs to 10.0 ms, on average 3.6 ms" in sentence(unsteady)
    assert "The steps are unsteady" in " ".join(render(unsteady, "text", verbose=True).split())
    assert "step unsteady, on average 3.6 ms" in render(unsteady, "text")


def test_steady_steps_say_nothing_of_it() -> None:
    """A time to three digits, as measured."""
    steady = timed([900.0, 905.0, 899.0, 901.0, 900.0, 902.0, 898.0, 900.0])
    assert sentence(steady) == ""


def test_timed_steps_that_did_other_work_are_called_so() -> None:
    """Recorded steps of 1 ms, and steps of 90 µs: no replay joins them, and the reason says what would settle it."""
    analysis = timed([90.0, 91.0, 89.0, 90.0, 90.0])
    assert analysis.step.bound is Bound.UNKNOWN
    assert "the timed steps aren't like the recorded ones" in analysis.step.reason
    assert "--calibrate" in analysis.step.reason
