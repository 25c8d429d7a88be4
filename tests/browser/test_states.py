"""States of the step in the browser: a row of their table, or the field above the timeline, draws one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser.test_access import SIZES, violations
from tests.browser.viewer import Report
from tests.networks import launch_bound

pytestmark = [pytest.mark.slow, pytest.mark.browser]

BOTH = "syncs removed, compiled (reduce-overhead)"
SENTENCE = "Hatched: step 2 with its syncs removed, compiled (reduce-overhead), projected."
HATCHED = """() => { const { replay } = syncscan.timeline.options;
  return syncscan.timeline.layout.bands.filter((b) => b.kind === 'projected' && replay.slices.get(b.lane) === b.slices)
    .reduce((n, b) => n + b.slices.start.length, 0); }"""
IN_WINDOW = """() => { const { top, bottom } = document.getElementById('lanes').getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight; }"""


def pressed(report: Report) -> list[str]:
    """The rows of the table that are chosen."""
    names: list[str] = report.page.locator(".state[aria-pressed=true]").all_inner_texts()
    return names


@pytest.mark.parametrize("size", SIZES)
def test_a_click_on_a_state_draws_it(show: Callable[..., Report], size: str) -> None:
    """Its row is pressed, the sentence names it, its work is hatched, and the timeline comes into view."""
    report = show(launch_bound(reads=10), **SIZES[size])
    report.page.get_by_label("Projected step").select_option("0")
    report.page.get_by_role("button", name=BOTH).click()
    report.page.wait_for_function(IN_WINDOW)
    report.settle()
    assert pressed(report) == [BOTH]
    assert report.page.locator("#replay-said").inner_text() == SENTENCE
    assert report.js(HATCHED) == 111
    assert report.page.get_by_label("Projected step").input_value() == "4"
    assert "aren't drawn: 9 of 120" in report.page.locator("#states-said").inner_text()
    assert violations(report) == []


def test_a_page_opens_with_the_state_that_its_first_change_leads_to(show: Callable[..., Report]) -> None:
    """Here syncs keep the network from being compiled: the timeline shows the step that the first screen speaks of."""
    report = show(launch_bound(reads=10))
    assert report.page.locator("#replay-said").inner_text() == SENTENCE
    assert pressed(report) == [BOTH]


def test_a_state_is_chosen_by_keyboard(show: Callable[..., Report]) -> None:
    """Tab reaches each row, Enter and the space bar draw it; the first row draws the step as recorded."""
    report = show(launch_bound(reads=10))
    report.page.get_by_role("button", name="syncs removed, compiled", exact=True).focus()
    report.page.keyboard.press("Tab")
    report.page.keyboard.press("Tab")
    report.page.keyboard.press("Enter")
    report.settle()
    assert pressed(report) == [BOTH]
    assert report.page.locator("#replay-said").inner_text() == SENTENCE
    assert report.js("document.activeElement.textContent") == BOTH
    report.page.get_by_role("button", name="with its syncs, as it is").focus()
    report.page.keyboard.press("Space")
    report.settle()
    assert pressed(report) == ["with its syncs, as it is"]
    assert report.page.locator("#replay-said").inner_text() == "As recorded: no projection is drawn."
    assert report.js("syncscan.timeline.options.replay") is None


def test_the_field_above_the_timeline_offers_states_too(show: Callable[..., Report]) -> None:
    """The table follows; a finding that is chosen then is drawn without its sync again."""
    report = show(launch_bound(reads=10))
    field = report.page.get_by_label("Projected step")
    field.select_option("with its syncs, compiled")
    assert pressed(report) == ["with its syncs, compiled"]
    assert "what a compile then costs" in report.page.locator("#replay-untold").inner_text()
    report.page.locator("#f0 .place").click()
    report.settle()
    assert pressed(report) == ["syncs removed, as it is"]
    report.page.locator("#r0 .gain").click()
    report.settle()
    assert report.page.locator("#replay-said").inner_text() == SENTENCE


def test_without_syncs_nothing_is_hatched_until_a_state_is_chosen(show: Callable[..., Report]) -> None:
    """There is no step without syncs to begin with."""
    report = show(launch_bound())
    assert pressed(report) == ["as it is"]
    report.page.keyboard.press("o")
    assert pressed(report) == ["compiled"]
    assert report.page.locator("#replay-said").inner_text() == "Hatched: step 4 compiled, projected."
