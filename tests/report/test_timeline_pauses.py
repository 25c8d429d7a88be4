"""Findings of the host are drawn: a pause on its thread's lane, a saving by samples as a bar and a tile."""

from __future__ import annotations

from pathlib import Path

from syncscan import api
from syncscan.report import html
from syncscan.report.before_after import before_after
from syncscan.report.story import story_of
from syncscan.report.tiles import bars, tiles, widest_us
from syncscan.report.timeline import timeline
from syncscan.report.timeline_pauses import pauses
from syncscan.report.waterfall import sampled

STALLS = Path(__file__).parent.parent.parent / "sample_traces" / "stalls"


def test_the_collector_s_pause_is_a_slice_of_its_thread() -> None:
    """On a lane of its own, by the habit's title; a search for it counts it."""
    analysis = api.analyze(STALLS / "gc.json.gz")
    ((habit, intervals),) = pauses(analysis)
    data = timeline(analysis)
    (lane,) = [lane for group in data["groups"] for lane in group["lanes"] if lane["kind"] == "pauses"]
    assert lane["label"] == "pauses"
    number = data["names"].index(habit.advice.title)
    assert data["counts"][number] == len(intervals)


def test_the_step_without_the_collector_is_drawn_and_promised() -> None:
    """A pause before, none after, and a tile with the saving and its range."""
    analysis = api.analyze(STALLS / "gc.json.gz")
    drawn = before_after(analysis, story_of(analysis))
    assert drawn is not None
    assert [piece.look for piece in drawn.recorded.host] == ["pause"]
    assert drawn.shown.lanes.host == ()
    assert tiles(analysis)[-1].label == "recoverable by the first change"


def test_a_saving_by_samples_is_a_bar_of_its_own() -> None:
    """The step before and after doesn't draw it, since its place is only likely; the bar says that it stands alone."""
    analysis = api.analyze(STALLS / "lock_busy.json.gz")
    (bar,) = sampled(analysis, story_of(analysis), widest_us(analysis))
    assert bar.label.endswith("(alone, by samples)")
    (thread,) = [bar for bar in bars(analysis) if bar.label == "thread, sampled"]
    assert "off it while another Python thread ran" in thread.spoken
    assert "by samples" in html.render(analysis)
