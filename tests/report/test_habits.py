"""Facts about how habits are shown."""

from __future__ import annotations

from dataclasses import replace

from syncscan.model.finding import Confidence, Phase, Severity, Source
from syncscan.model.habit import Advice, Area, Basis, Habit, HabitGain, Split, Stretch
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


def graphs(**changes):
    """A habit of launches with two stretches and what lies between them."""
    backward = Stretch(phase=Phase.BACKWARD, launches=130, host_us=1560, ended_by="", changes=(), gain=GAIN)
    forward = Stretch(phase=Phase.FORWARD, launches=110, host_us=1320, ended_by="a read", changes=())
    read = Split(what="a read", source=Source("a/train.py", 7, "f", True), finding="id", per_step=2, us=0)
    return replace(HABIT, **{"stretches": (backward, forward), "splits": (read,), **changes})


def test_launches_that_a_graph_can_hold_are_told_with_what_each_part_saves_and_what_splits_them():
    """Phase, launches, host time, saving; what ends a part; the line and how often."""
    assert list(report.lines([graphs()], 10_000.0))[3:5] == [
        "        alone: backward: 130 launches in 1.56 ms saves 1.00 ms; forward: 110 launches in 1.32 ms, up to"
        " a read",
        "        in the way of one graph: a read (train.py:7), 2 a step",
    ]


def test_of_many_things_in_the_way_the_first_are_named_and_the_rest_counted():
    """Four."""
    line = list(report.lines([graphs(splits=graphs().splits * 9)], 10_000.0))[4]
    assert line.count("train.py:7") == 4
    assert line.endswith("; and 5 more")


def test_the_json_holds_stretches_and_splits():
    """In µs a step, null where nothing is known."""
    (document,) = report.document([graphs()])
    assert document["stretches"][1] == {
        "phase": "forward",
        "launches": 110,
        "host_us": 1320,
        "ended_by": "a read",
        "recoverable_us": None,
        "recoverable_range_us": None,
    }
    assert document["stretches"][0]["recoverable_range_us"] == [500.0, 1500.0]
    assert document["splits"] == [
        {"what": "a read", "file": "a/train.py", "line": 7, "finding": "id", "per_step": 2, "us": 0}
    ]


def test_a_scope_of_a_trace_can_not_reach_the_terminal():
    """Its control characters are replaced."""
    split = Split(what="\x1b", source=Source("\x07", 1, "", True), per_step=1, us=0)
    hostile = graphs(scope=("\x1b[31m",), evidence=("\x07",), splits=(split,))
    text = "".join(report.lines([hostile], 1.0))
    assert "\x1b" not in text
    assert "\x07" not in text


def test_the_json_holds_the_same():
    """Added to an analysis under `habits`."""
    (document,) = report.document([HABIT])
    assert document["recoverable_range_us"] == [500.0, 1500.0]
    assert document["basis"] == "replay"
    assert document["area"] == "input"
