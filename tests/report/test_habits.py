"""Facts about how habits are shown."""

from __future__ import annotations

from dataclasses import replace

from syncscan.model.finding import Confidence, Severity
from syncscan.model.habit import Advice, Area, Basis, Habit, HabitGain
from syncscan.report import habits as report

ADVICE = Advice("inline-pin", Area.INPUT, "Batches are pinned", "Because.", "Do this.", "Never.")
GAIN = HabitGain(1000.0, (500.0, 1500.0), Basis.REPLAY)
HABIT = Habit("inline-pin-1", ADVICE, Confidence.HIGH, ("load",), "", 1.0, ("2 ms",), 2000.0, (), GAIN, Severity.HIGH)


def test_a_projection_is_told_from_a_bound_and_from_a_spoilt_measurement():
    """Three different words for three different things."""
    bound = replace(HABIT, gain=replace(GAIN, basis=Basis.UPPER_BOUND))
    assert report.saves(HABIT, 10_000.0) == "would save 1.00 ms a step (10%; 500 µs to 1.50 ms)"
    assert report.saves(bound, 10_000.0) == "at most 1.00 ms a step (10%), not projected"
    assert report.saves(replace(HABIT, gain=None), 10_000.0) == "spoils the measurement"


def test_each_habit_says_where_how_much_by_what_and_what_to_do():
    """In that order; the first few unasked, all with -v."""
    assert list(report.lines([HABIT], 10_000.0)) == [
        "Besides syncs:",
        " high   Batches are pinned (in load): would save 1.00 ms a step (10%; 500 µs to 1.50 ms)",
        "        2 ms",
        "        → Do this.",
    ]
    assert list(report.lines([HABIT] * 7, 10_000.0))[-1] == " … and 2 more with -v."
    assert list(report.lines([], 1.0)) == []


def test_a_scope_of_a_trace_can_not_reach_the_terminal():
    """Its control characters are replaced."""
    text = "".join(report.lines([replace(HABIT, scope=("\x1b[31m",), evidence=("\x07",))], 1.0))
    assert "\x1b" not in text
    assert "\x07" not in text


def test_the_json_holds_the_same():
    """Added to an analysis under `habits`."""
    (document,) = report.document([HABIT])
    assert document["recoverable_range_us"] == [500.0, 1500.0]
    assert document["basis"] == "replay"
    assert document["area"] == "input"
