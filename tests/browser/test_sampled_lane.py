"""The timeline's lane of likely places, in a browser: a click opens its habit, and a chosen habit is turned to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from syncscan import api
from tests.browser.viewer import Report

pytestmark = [pytest.mark.slow, pytest.mark.browser]

STALLS = Path(__file__).parent.parent.parent / "sample_traces" / "stalls"
PLACE = """() => { const t = syncscan.timeline, band = t.layout.bands.find((b) => b.lane?.kind === KIND);
  const { start, end } = band.slices;
  const i = start.findIndex((s, k) => s >= t.view.from && (end[k] - s) * t.view.scale > 8);
  const box = t.canvas.getBoundingClientRect();
  return [box.left + t.left + t.view.x((start[i] + end[i]) / 2), box.top + t.topOf(band) + band.h / 2]; }"""
CHOSEN = """() => { const { slices, at } = syncscan.timeline.state.slice, v = syncscan.timeline.view;
  return [syncscan.data.names[slices.name[at]], v.from <= slices.start[at] && slices.end[at] <= v.to,
    slices.start.filter((s) => s < slices.start[at]).length]; }"""


def click(report: Report, kind: str) -> None:
    """Click a slice of the lane of this kind that is in view."""
    report.page.locator("#lanes").scroll_into_view_if_needed()
    report.page.mouse.click(*report.js(PLACE.replace("KIND", f"'{kind}'")))
    report.settle()


@pytest.mark.parametrize(
    ("name", "kind", "title"),
    [
        ("logging", "sampled", "The step's thread logs"),
        ("lock_busy", "sampled", "Another thread holds the GIL, and the step waits for it"),
        ("gc", "pauses", "Python's garbage collector runs in the step"),
    ],
)
def test_a_click_on_a_likely_place_or_a_pause_opens_its_habit(
    show: Callable[..., Report], name: str, kind: str, title: str
) -> None:
    """In the drawer, and the habit is the chosen item of the list."""
    report = show(api.analyze(STALLS / f"{name}.json.gz"), width=1280, height=720)
    click(report, kind)
    assert report.page.locator("#drawer-title bdi").inner_text() == title
    assert report.page.locator(".habit.selected .pick").inner_text() == title
    report.page.keyboard.press("Escape")
    assert not report.page.locator("#drawer").is_visible()
    report.page.locator("#details button").click()
    assert report.page.locator("#drawer-title bdi").inner_text() == title


@pytest.mark.parametrize("card", [".remedy", ".habit"])
def test_a_chosen_habit_is_turned_to_in_the_timeline(show: Callable[..., Report], card: str) -> None:
    """Its first likely place is selected and in view, and says that it comes from samples."""
    report = show(api.analyze(STALLS / "lock_busy.json.gz"))
    report.page.locator(f"{card} .pick").first.click()
    report.settle()
    name, in_view, before = report.js(CHOSEN)
    assert name == "waits for the GIL, held by reporter: count_words, host_stalls.py:112 (from samples: likely here)"
    assert in_view
    assert before == 0
    assert report.page.locator("#details strong").inner_text() == name


@pytest.mark.parametrize(("name", "drawn"), [("logging", True), ("gc", False), ("first_touch", False)])
def test_the_legend_has_likely_places_only_where_some_are_drawn(
    show: Callable[..., Report], name: str, drawn: bool
) -> None:
    """Beside that of pauses."""
    report = show(api.analyze(STALLS / f"{name}.json.gz"))
    assert report.page.locator("#legend-sampled").is_visible() == drawn
    assert report.page.locator("#legend-pause").is_visible() == (name == "gc")


def test_the_drawer_says_why_a_habit_is_not_drawn(show: Callable[..., Report]) -> None:
    """In one sentence below its evidence."""
    report = show(api.analyze(STALLS / "first_touch.json.gz"))
    report.page.locator(".habit .pick").first.press("Enter")
    sentence = "The timeline doesn't show where: an op such as aten::stack may hold it as well as a gap."
    assert report.page.locator("#drawer .unplaced").inner_text() == sentence
