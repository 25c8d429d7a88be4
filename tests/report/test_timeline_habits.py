"""Pauses that a fix takes out of a thread are drawn on a lane of their own."""

from __future__ import annotations

from pathlib import Path

from syncscan.report.timeline import timeline
from syncscan.report.timeline_lanes import pauses
from tests.recordings import analyzed

STALLS = Path(__file__).parent.parent.parent / "sample_traces" / "stalls"


def test_the_collector_s_pause_is_a_slice_of_its_thread() -> None:
    """By the habit's title, whose number leads to the habit; a search for it counts it."""
    analysis = analyzed(STALLS / "gc.json.gz")
    ((habit, intervals),) = pauses(analysis)
    data = timeline(analysis)
    (lane,) = [lane for group in data["groups"] for lane in group["lanes"] if lane["kind"] == "pauses"]
    assert lane["label"] == "pauses"
    number = data["names"].index(habit.title)
    assert data["habits"] == {number: habit.id}
    assert data["counts"][number] == len(intervals)


def test_what_only_samples_show_has_no_lane() -> None:
    """Where in the recorded steps it was isn't known."""
    data = timeline(analyzed(STALLS / "lock_busy.json.gz"))
    assert {lane["kind"] for group in data["groups"] for lane in group["lanes"]} <= {"scopes", "ops", "stream"}
    assert data["habits"] == {}
